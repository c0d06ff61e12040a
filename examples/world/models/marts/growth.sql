MODEL (
  name marts.growth,
  kind FULL,
  description 'How much each measure grew since the year before it in the data'
);

SELECT
  iso,
  year,
  @EACH([life_expectancy, population, gdp], measure -> @growth(measure) AS @{measure}_growth)
FROM clean.indicators;
