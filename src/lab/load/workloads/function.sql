\set id random(1, :rows)
-- expect SELECT 1, test:id
SELECT pgautoprep_bench.f1(:id);
