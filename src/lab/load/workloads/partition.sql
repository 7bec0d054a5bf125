\set id random(1, 2000000000)
-- expect INSERT 0 1
INSERT INTO pgautoprep_bench.p VALUES (:id, 'test', now());
