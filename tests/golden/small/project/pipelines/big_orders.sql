INSERT INTO [{{ sink('lake', 'orders', format: 'csv', strategy: 'replace') }}, {{ sink('mart', 'orders', strategy: 'merge', keys: ['id']) }}]
WITH wanted AS (SELECT * FROM {{ ref('clean') }} WHERE amount >= {{ var('least') }})
SELECT id, customer, amount FROM wanted
