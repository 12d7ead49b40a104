-- Airports by FAA code, as a view: nothing is copied.
SELECT faa, name AS airport, nullif(tzone, 'NA') AS time_zone
FROM {{ source('nyc', 'airports') }}
