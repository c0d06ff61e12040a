MODEL (
  name marts.growth,
  kind FULL,
  description 'How much each measure grew since the year before it in the data'
);

SELECT
  iso,
  year,
  life_expectancy / lag(life_expectancy) OVER by_country - 1 AS life_expectancy_growth,
  population / lag(population) OVER by_country - 1 AS population_growth,
  gdp / lag(gdp) OVER by_country - 1 AS gdp_growth
FROM clean.indicators
WINDOW by_country AS (PARTITION BY iso ORDER BY year);
