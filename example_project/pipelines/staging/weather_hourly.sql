-- One row per airport and hour; inlined into the query that uses it.
SELECT
    origin,
    time_hour,
    CAST(nullif(temp, 'NA') AS DOUBLE) AS temp_f,
    CAST(nullif(wind_speed, 'NA') AS DOUBLE) AS wind_mph,
    CAST(nullif(precip, 'NA') AS DOUBLE) AS precip_in,
    CAST(nullif(visib, 'NA') AS DOUBLE) AS visibility_mi
FROM {{ source('nyc', 'weather') }}
