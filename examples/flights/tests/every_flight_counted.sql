-- Airlines whose flights of the day are not all in the summary, in either direction.

ATTACH 'ducklake://main' AS dl;

WITH expected AS (
  SELECT carrier, count(*) AS flights
  FROM dl.flights
  WHERE flight_date = '{partition}'::date
  GROUP BY carrier
)
SELECT coalesce(e.carrier, d.carrier) AS carrier, e.flights AS expected, d.flights AS counted
FROM expected AS e
FULL OUTER JOIN (SELECT * FROM dl.delays_daily WHERE _wm_partition = '{partition}') AS d
  ON d.carrier = e.carrier
WHERE e.flights IS DISTINCT FROM d.flights;
