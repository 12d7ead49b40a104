-- incremental: crm.dbo.events (cursor seen_at, declared in SQL)
-- output: lake.events (append)
SELECT id, seen_at FROM staging.src_crm__dbo_events WHERE (('__pz_watermark__crm.dbo.events' - INTERVAL 1 HOUR) IS NULL OR seen_at >= '__pz_watermark__crm.dbo.events' - INTERVAL 1 HOUR)
