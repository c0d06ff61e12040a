MODEL (
  name clean.indicators,
  kind INCREMENTAL_BY_PARTITION,
  partitioned_by year,
  grain (iso, year),
  audits (
    not_null(columns := (iso, year)),
    unique_combination_of_columns(columns := (iso, year)),
    accepted_range(column := life_expectancy, min_v := 20, max_v := 90),
    known_country(column := iso)
  ),
  description 'One row a country and year; a year that is loaded again is replaced',
  column_descriptions (gdp = 'US dollars of 2005, at purchasing power parity')
);

SELECT
  iso,
  year,
  life_expectancy,
  population,
  gdp_per_capita,
  population * gdp_per_capita AS gdp
FROM shared.indicators_by_iso;
