MODEL (
  name raw.indicators,
  kind SEED (path '$root/seeds/indicators.csv'),
  columns (
    country TEXT,
    continent TEXT,
    year INT,
    life_expectancy DOUBLE,
    population BIGINT,
    gdp_per_capita DOUBLE
  ),
  audits (unique_combination_of_columns(columns := (country, year))),
  description 'Gapminder: 142 countries, every fifth year from 1952 to 2007'
);
