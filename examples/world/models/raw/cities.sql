MODEL (
  name raw.cities,
  kind SEED (
    path '$root/seeds/cities.csv',
    csv_settings (keep_default_na = false, na_values = (''))
  ),
  columns (
    geonameid BIGINT,
    name TEXT,
    iso TEXT,
    latitude DOUBLE,
    longitude DOUBLE,
    population BIGINT,
    timezone TEXT
  ),
  description 'Cities of half a million people and more'
);
