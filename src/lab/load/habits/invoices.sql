\set customer random(1, 499)
\set invoice random(1, 2000)
\set buyer random(500, 999)
\set total random(1, 9999)
-- expect SELECT 1, :invoice
SELECT id, total FROM invoice WHERE id = :invoice;
-- expect SELECT 4, :customer
SELECT id, total FROM invoice WHERE customer = :customer ORDER BY id;
-- expect INSERT 0 1
INSERT INTO invoice (customer, total) VALUES (:buyer, :total.50);
