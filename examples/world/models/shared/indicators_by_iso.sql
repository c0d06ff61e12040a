MODEL (
  name shared.indicators_by_iso,
  kind EMBEDDED,
  description 'Indicators by the code of their country, under whichever name it is known'
);

SELECT
  coalesce(other.iso, same.iso) AS iso,
  i.year,
  i.life_expectancy,
  i.population,
  i.gdp_per_capita
FROM raw.indicators AS i
LEFT JOIN raw.country_names AS other ON other.name = i.country
LEFT JOIN raw.countries AS same ON same.name = i.country;
