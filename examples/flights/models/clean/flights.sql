-- pipeline
-- on ducklake://main/airlines
-- on ducklake://main/airports
-- partitioned daily tz="America/New_York" start="2013-01-01"
-- materialize ducklake://main/flights key=flight_date,carrier,flight,origin
-- data_test not_null scheduled_at
-- data_test accepted_values status = flown,diverted,cancelled
-- data_test relationships carrier -> ducklake://main/airlines.carrier
-- data_test relationships origin -> ducklake://main/airports.faa
-- data_test tests/clock_agrees
--
-- Merged on the natural key: a flight number may leave two airports on one day (it does 24 times in
-- 2013), so the origin belongs to it. Clock times become instants: the delay is counted from the
-- schedule, which is right past midnight too, where the clock alone is not.
-- No relationship is declared for dest: four airports of the Caribbean are not in airports.csv.

ATTACH 'ducklake://main' AS dl;

WITH typed AS (
  SELECT
    *,
    make_date(year, month, day) AS flight_date,
    time_hour + make_dt_interval(0, 0, minute) AS scheduled_at
  FROM dl.flights_raw
  WHERE _wm_partition = '{partition}'
)
SELECT
  flight_date,
  carrier,
  flight,
  origin,
  dest,
  tailnum,
  scheduled_at,
  scheduled_at + make_dt_interval(0, 0, dep_delay) AS departed_at,
  dep_time AS departed_clock,
  dep_delay AS departure_delay_min,
  arr_delay AS arrival_delay_min,
  air_time AS air_time_min,
  (distance * 1.609344)::decimal(7, 1) AS distance_km,
  CASE
    WHEN dep_time IS NULL THEN 'cancelled'
    WHEN arr_delay IS NULL THEN 'diverted'
    ELSE 'flown'
  END AS status
FROM typed;
