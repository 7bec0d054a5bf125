\set id random(1, 2000000000)
-- expect SELECT 1
SELECT pgautoprep_bench.route(:id, 'test', now()::timestamp);
