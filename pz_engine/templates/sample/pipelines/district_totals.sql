-- Rides and money per district and day.
INSERT INTO {{ sink('out', 'district_totals', format: 'parquet', strategy: 'replace') }}
SELECT
  start_district AS district,
  CAST(started_at AS DATE) AS day,
  count(*) AS trips,
  sum(fare) AS fares
FROM {{ ref('trips_enriched') }}
GROUP BY ALL
ORDER BY district, day
