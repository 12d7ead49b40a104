-- Leave out rides that ended before they began.
SELECT *
FROM {{ source('city', 'trips') }}
WHERE minutes >= {{ var('shortest_trip') }}
