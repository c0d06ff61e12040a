-- pipeline
-- partitioned daily tz="America/New_York" start="2013-01-01"
-- needs main.flights same
-- materialize ducklake://main/loads append
-- data_test not_null raw_rows
--
-- A line for each load of a day: an append never looks back, so loading a day twice is two lines.

ATTACH 'ducklake://main' AS dl;

SELECT
  current_timestamp() AS loaded_at,
  flight_date,
  count(*) AS flights,
  count_if(status = 'cancelled') AS cancelled,
  (SELECT count(*) FROM dl.flights_raw WHERE _wm_partition = '{partition}') AS raw_rows
FROM dl.flights
WHERE flight_date = '{partition}'::date
GROUP BY flight_date;
