INSERT INTO {{ sink('lake', 'events', strategy: 'append', duplicates: 'accept') }}
SELECT id, seen_at FROM {{ source('crm', 'dbo.events') }} WHERE seen_at >= {{ watermark('crm', 'dbo.events') }} - INTERVAL 1 HOUR
