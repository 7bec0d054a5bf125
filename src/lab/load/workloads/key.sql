\set id random(1, :rows)
-- expect SELECT 1, :id
SELECT id, info FROM pgautoprep_bench.test WHERE id = :id;
