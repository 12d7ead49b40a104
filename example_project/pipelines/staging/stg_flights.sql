-- Flights with NA as NULL and real timestamps: when each one should have left, and when it did.
SELECT
    make_timestamp(year, month, day, hour, minute, 0) AS scheduled_at,
    make_timestamp(year, month, day, hour, minute, 0)
        + to_minutes(CAST(nullif(dep_delay, 'NA') AS INTEGER)) AS departed_at,
    time_hour,
    make_date(year, month, 1) AS flight_month,
    carrier,
    flight,
    nullif(tailnum, 'NA') AS tailnum,
    origin,
    dest,
    CAST(nullif(dep_delay, 'NA') AS INTEGER) AS dep_delay,
    CAST(nullif(arr_delay, 'NA') AS INTEGER) AS arr_delay,
    CAST(nullif(air_time, 'NA') AS INTEGER) AS air_time,
    distance
FROM {{ source('nyc', 'flights') }}
