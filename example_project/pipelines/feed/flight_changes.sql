-- Flights behind the watermark, merged into the warehouse by their natural key.
INSERT INTO {{ sink('warehouse', 'flights', strategy: 'merge', keys: ['time_hour', 'carrier', 'flight', 'origin']) }}
SELECT
    time_hour,
    carrier,
    flight,
    origin,
    dest,
    nullif(tailnum, 'NA') AS tailnum,
    CAST(nullif(dep_delay, 'NA') AS INTEGER) AS dep_delay,
    CAST(nullif(arr_delay, 'NA') AS INTEGER) AS arr_delay
FROM {{ source('feed', 'flights') }}
WHERE time_hour > {{ watermark('feed', 'flights') }}
