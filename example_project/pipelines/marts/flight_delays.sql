-- Every flight with its airline, destination, plane and the weather at the hour of departure.
INSERT INTO {{ sink('lake', 'flight_delays', format: 'parquet', strategy: 'replace') }}
SELECT
    f.scheduled_at,
    f.departed_at,
    f.time_hour,
    f.flight_month,
    f.carrier,
    a.name AS airline,
    f.flight,
    f.origin,
    f.dest,
    d.airport AS destination,
    f.tailnum,
    p.manufacturer,
    p.model,
    p.seats,
    year(f.scheduled_at) - p.built_in AS plane_age,
    f.distance,
    f.air_time,
    f.dep_delay,
    f.arr_delay,
    f.dep_delay IS NULL AS is_cancelled,
    coalesce(f.dep_delay >= {{ var('late_after_minutes') }}, false) AS is_late,
    w.temp_f,
    w.wind_mph,
    w.precip_in,
    w.visibility_mi
FROM {{ ref('stg_flights') }} AS f
JOIN {{ source('nyc', 'airlines', path: 'airlines.csv', columns: { carrier: 'varchar', name: 'varchar' }) }} AS a ON a.carrier = f.carrier
LEFT JOIN {{ ref('stg_airports') }} AS d ON d.faa = f.dest
LEFT JOIN {{ ref('stg_planes') }} AS p ON p.tailnum = f.tailnum
LEFT JOIN {{ ref('weather_hourly') }} AS w ON w.origin = f.origin AND w.time_hour = f.time_hour
{{ if var('without_airline') }}
WHERE f.carrier <> '{{ var('without_airline') }}'
{{ end }}
