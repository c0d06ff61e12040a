-- Rows whose departure, computed from schedule and delay, is not at the clock time of the raw file.
-- 2400 and 0 are the same midnight, so both are compared modulo a day.

ATTACH 'ducklake://main' AS dl;

WITH clock AS (
  SELECT *, convert_timezone('America/New_York', departed_at::timestamp_ntz) AS local
  FROM dl.flights
  WHERE flight_date = '{partition}'::date
)
SELECT flight_date, carrier, flight, origin, departed_clock, local
FROM clock
WHERE departed_clock % 2400 <> hour(local) * 100 + minute(local);
