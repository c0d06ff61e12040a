AUDIT (name share);

SELECT * FROM @this_model WHERE @column < 0 OR @column > 1;

AUDIT (name known_country);

SELECT * FROM @this_model
WHERE @column NOT IN (SELECT iso FROM raw.countries);
