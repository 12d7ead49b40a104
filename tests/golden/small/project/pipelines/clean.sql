-- Orders with a customer.
SELECT id, trim(customer) AS customer, amount FROM {{ source('crm', 'orders') }} WHERE customer IS NOT NULL;
