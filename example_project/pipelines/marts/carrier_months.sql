-- Punctuality by airline and month, as Parquet for tools and CSV for people.
INSERT INTO [{{ sink('lake', 'carrier_months', format: 'parquet', strategy: 'replace') }}, {{ sink('lake', 'carrier_months_csv', format: 'csv', strategy: 'replace') }}]
SELECT
    flight_month,
    carrier,
    airline,
    count(*) AS flights,
    count(*) FILTER (is_cancelled) AS cancelled,
    count(*) FILTER (is_late) AS late,
    sum(dep_delay) AS delay_minutes,
    round(avg(dep_delay), 2) AS avg_delay
FROM {{ ref('flight_delays') }}
GROUP BY ALL
ORDER BY flight_month, carrier
