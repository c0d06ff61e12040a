-- pipeline
-- materialize ducklake://main/orders key=order_id
-- data_test not_null customer
-- data_test accepted_values status = paid,pending,refunded
-- data_test tests/amounts_are_positive

-- Merged on its key: a run updates the orders it finds and adds those it does not.
SELECT order_id, customer, status, CAST(amount AS DECIMAL(10, 2)) AS amount
FROM VALUES
    (1, 'ada', 'paid', 12.50),
    (2, 'grace', 'pending', 8.00),
    (3, 'ada', 'paid', 30.25) AS orders(order_id, customer, status, amount)
