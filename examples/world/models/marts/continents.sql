MODEL (
  name marts.continents,
  kind FULL,
  audits (not_null(columns := continent), share(column := share_of_gdp)),
  description 'The countries of each continent together, weighted by their gross domestic product'
);

SELECT
  continent.name AS continent,
  count(*) AS countries,
  sum(country.gdp) AS gdp,
  part_of(sum(country.gdp), sum(sum(country.gdp)) OVER ()) AS share_of_gdp,
  max_by(country.name, country.life_expectancy) AS longest_lives
FROM marts.countries AS country
JOIN atlas.main.continents AS continent ON continent.code = country.continent
GROUP BY continent.name;
