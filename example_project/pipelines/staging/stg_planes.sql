-- Planes by tail number; the year of manufacture is missing for some.
SELECT
    tailnum,
    CAST(nullif(year, 'NA') AS INTEGER) AS built_in,
    manufacturer,
    model,
    seats
FROM {{ source('nyc', 'planes') }}
