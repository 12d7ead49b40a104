-- Departures by airport and hour, window by window; all flights of an hour are in one window, so no group is cut.
INSERT INTO {{ sink('history', 'hourly_departures', strategy: 'merge', keys: ['time_hour', 'origin']) }}
SELECT
    time_hour,
    origin,
    count(*) AS flights,
    count(*) FILTER (dep_delay = 'NA') AS cancelled
FROM {{ source('feed', 'departures') }}
GROUP BY ALL
