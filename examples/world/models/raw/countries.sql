MODEL (
  name raw.countries,
  kind SEED (
    path '$root/seeds/countries.csv',
    -- NA is Namibia, and North America: only an empty field is unknown.
    csv_settings (keep_default_na = false, na_values = (''))
  ),
  columns (
    iso TEXT,
    iso3 TEXT,
    name TEXT,
    capital TEXT,
    area_km2 DOUBLE,
    population BIGINT,
    continent TEXT,
    currency TEXT,
    languages TEXT,
    neighbours TEXT,
    geonameid BIGINT
  ),
  audits (not_null(columns := (iso, name)), unique_values(columns := (iso, name))),
  description 'Countries and territories of GeoNames'
);
