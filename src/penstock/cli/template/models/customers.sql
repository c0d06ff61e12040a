-- pipeline
-- materialize ducklake://main/customers
-- data_test unique customer
-- data_test relationships customer -> ducklake://main/orders.customer

ATTACH 'ducklake://main' AS dl;

-- Replaced as a whole each run; it runs after orders because it reads them.
SELECT customer, count(*) AS orders, sum(amount) AS spent
FROM dl.orders
WHERE status = 'paid'
GROUP BY customer
