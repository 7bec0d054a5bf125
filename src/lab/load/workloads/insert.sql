\set aid random(1, :rows)
\set tid random(1, 100)
\set amount random(1, 99999) / 100.0
-- expect INSERT 0 1
INSERT INTO pgautoprep_bench.orders (aid, tid, amount, note, created)
VALUES (:aid, :tid, :amount, 'an order', now());
