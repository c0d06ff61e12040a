MODEL (
  name marts.countries,
  kind VIEW,
  dialect duckdb,
  audits (number_of_rows(threshold := 100), not_null(columns := (iso, name))),
  description 'The latest year of each country, with its largest city'
);

WITH largest AS (
  SELECT iso, name
  FROM clean.cities
  QUALIFY row_number() OVER (PARTITION BY iso ORDER BY population DESC, geonameid) = 1
)
SELECT
  i.iso,
  country.name,
  country.continent,
  i.year,
  i.life_expectancy,
  i.gdp_per_capita,
  i.gdp,
  largest.name AS largest_city
FROM clean.indicators AS i
JOIN raw.countries AS country ON country.iso = i.iso
LEFT JOIN largest ON largest.iso = i.iso
QUALIFY row_number() OVER (PARTITION BY i.iso ORDER BY i.year DESC) = 1;
