-- pipeline
-- partitioned daily tz="America/New_York" start="2013-01-01"
-- materialize ducklake://main/flights_raw
-- data_test not_null time_hour
-- data_test accepted_values origin = EWR,JFK,LGA
--
-- One day of departures as the file has them: local clock times as numbers (517 is 5:17), NA where
-- nothing is known. Loading a day again replaces that day and no other.

SELECT *
FROM read_csv(
  'data/flights-' || '{partition}' || '.csv.gz',
  header = true,
  nullstr = 'NA',
  columns = {
    'year': 'INTEGER',
    'month': 'INTEGER',
    'day': 'INTEGER',
    'dep_time': 'INTEGER',
    'sched_dep_time': 'INTEGER',
    'dep_delay': 'INTEGER',
    'arr_time': 'INTEGER',
    'sched_arr_time': 'INTEGER',
    'arr_delay': 'INTEGER',
    'carrier': 'VARCHAR',
    'flight': 'INTEGER',
    'tailnum': 'VARCHAR',
    'origin': 'VARCHAR',
    'dest': 'VARCHAR',
    'air_time': 'INTEGER',
    'distance': 'INTEGER',
    'hour': 'INTEGER',
    'minute': 'INTEGER',
    'time_hour': 'TIMESTAMPTZ'
  }
);
