-- pipeline
-- partitioned daily tz="America/New_York" start="2013-01-01"
-- needs main.flights same
-- materialize ducklake://main/delays_daily
-- data_test unique carrier
-- data_test not_null airline
-- data_test tests/every_flight_counted
--
-- One row an airline for the day; the tests see the day's rows, so carrier is unique in them.

ATTACH 'ducklake://main' AS dl;

SELECT
  f.flight_date,
  f.carrier,
  a.name AS airline,
  count(*) AS flights,
  count_if(f.status = 'cancelled') AS cancelled,
  count_if(f.departure_delay_min > 15) AS late,
  avg(f.departure_delay_min)::decimal(9, 2) AS mean_delay_min,
  max(f.departure_delay_min) AS worst_delay_min
FROM dl.flights AS f
JOIN dl.airlines AS a ON a.carrier = f.carrier
WHERE f.flight_date = '{partition}'::date
GROUP BY f.flight_date, f.carrier, a.name;
