MODEL (
  name raw.country_names,
  kind SEED (path '$root/seeds/country_names.csv'),
  columns (name TEXT, iso TEXT),
  audits (unique_values(columns := (name))),
  description 'Countries that Gapminder calls by another name than GeoNames'
);
