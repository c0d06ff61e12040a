-- pipeline
-- materialize ducklake://main/leaders append
-- data_test not_null carrier
--
-- Who led the ranking after each run: an append to a whole table.

ATTACH 'ducklake://main' AS dl;

SELECT current_timestamp() AS noted_at, carrier, airline, flights, late_share
FROM dl.airline_ranking
WHERE place = 1;
