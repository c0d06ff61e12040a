-- pipeline
-- materialize ducklake://main/airports
-- data_test unique faa
-- data_test not_null name
--
-- A whole table, replaced by what the file holds; when the file is the same, nothing is written.

SELECT faa, name, lat, lon, alt AS altitude_ft, tzone
FROM read_csv(
  'data/airports.csv',
  header = true,
  nullstr = 'NA',
  columns = {
    'faa': 'VARCHAR',
    'name': 'VARCHAR',
    'lat': 'DOUBLE',
    'lon': 'DOUBLE',
    'alt': 'INTEGER',
    'tz': 'INTEGER',
    'dst': 'VARCHAR',
    'tzone': 'VARCHAR'
  }
);
