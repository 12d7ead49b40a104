-- output: lake.orders (csv, replace)
-- output: mart.orders (merge)
WITH __pz_cte__clean AS (
-- Orders with a customer.
SELECT id, trim(customer) AS customer, amount FROM staging.src_crm__orders WHERE customer IS NOT NULL
), wanted AS (SELECT * FROM __pz_cte__clean WHERE amount >= 10)
SELECT id, customer, amount FROM wanted
