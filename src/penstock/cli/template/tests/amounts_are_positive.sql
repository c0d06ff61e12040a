-- A data test passes when it finds no rows.
ATTACH 'ducklake://main' AS dl;

SELECT * FROM dl.orders WHERE amount <= 0
