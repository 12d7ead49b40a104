-- One row per ride, with the names of both zones.
INSERT INTO {{ sink('out', 'trips', format: 'csv', strategy: 'replace') }}
SELECT
  t.trip_id,
  t.started_at,
  s.name AS start_name,
  s.district AS start_district,
  e.name AS end_name,
  t.minutes,
  t.fare
FROM {{ ref('trips_clean') }} AS t
JOIN {{ source('city', 'zones', path: 'zones.csv', columns: { zone_id: 'varchar', name: 'varchar', district: 'varchar' }) }} AS s
  ON s.zone_id = t.start_zone
JOIN {{ source('city', 'zones', path: 'zones.csv', columns: { zone_id: 'varchar', name: 'varchar', district: 'varchar' }) }} AS e
  ON e.zone_id = t.end_zone
