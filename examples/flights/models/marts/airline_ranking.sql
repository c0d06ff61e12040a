-- pipeline
-- materialize ducklake://main/airline_ranking
-- data_test unique carrier
-- data_test not_null late_share
--
-- Airlines by their share of late departures, over every day that is loaded.
-- Try: penstock run --select marts/airline_ranking --arg min_flights=100
-- $min_flights (int) = 20

ATTACH 'ducklake://main' AS dl;

WITH totals AS (
  SELECT carrier, airline, sum(flights) AS flights, sum(late) AS late
  FROM dl.delays_daily
  GROUP BY carrier, airline
)
SELECT
  rank() OVER (ORDER BY late / flights, carrier) AS place,
  carrier,
  airline,
  flights,
  (late / flights)::decimal(5, 4) AS late_share
FROM totals
WHERE flights >= $min_flights;
