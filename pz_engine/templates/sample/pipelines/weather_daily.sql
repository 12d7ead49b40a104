-- An independent flow: nothing here touches the rides.
INSERT INTO {{ sink('out', 'weather_daily', format: 'csv', strategy: 'replace') }}
SELECT
  day,
  round(avg(temp_c), 1) AS temp_c,
  max(rain_mm) AS rain_mm
FROM {{ source('city', 'weather', path: 'weather.csv', columns: { day: 'date', station: 'varchar', temp_c: 'double', rain_mm: 'double' }) }}
GROUP BY day
ORDER BY day
