MODEL (
  name clean.cities,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key geonameid,
    -- A city whose name and people are the same is left as it is.
    when_matched (
      WHEN MATCHED AND source.population <> target.population OR source.name <> target.name
      THEN UPDATE SET target.name = source.name, target.population = source.population
    )
  ),
  audits (known_country(column := iso), share(column := share_of_country)),
  description 'Cities with their share of the country''s people'
);

SELECT
  city.geonameid,
  city.iso,
  city.name,
  city.population,
  city.timezone,
  part_of(city.population, country.population) AS share_of_country,
  city.name = country.capital AS is_capital
FROM raw.cities AS city
JOIN raw.countries AS country ON country.iso = city.iso
WHERE country.population > 0;
