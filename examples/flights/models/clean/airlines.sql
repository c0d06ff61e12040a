-- pipeline
-- materialize ducklake://main/airlines key=carrier
-- data_test unique carrier
-- data_test not_null name
--
-- The airline dimension: merged on its key, so a carrier that leaves the file stays in the table.

SELECT carrier, regexp_replace(name, ' (Inc[.]|Co[.]|Corporation)$', '') AS name
FROM read_csv(
  'data/airlines.csv',
  header = true,
  columns = {'carrier': 'VARCHAR', 'name': 'VARCHAR'}
);
