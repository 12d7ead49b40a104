-- Traffic and delay by route and month.
INSERT INTO {{ sink('lake', 'route_months', format: 'parquet', strategy: 'replace') }}
SELECT
    flight_month,
    origin,
    dest,
    destination,
    count(*) AS flights,
    count(*) FILTER (is_cancelled) AS cancelled,
    sum(distance) AS miles,
    round(avg(arr_delay), 2) AS avg_arrival_delay
FROM {{ ref('flight_delays') }}
GROUP BY ALL
ORDER BY flight_month, origin, dest
