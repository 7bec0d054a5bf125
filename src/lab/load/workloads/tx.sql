\set id random(1, :rows)
-- expect BEGIN
BEGIN;
-- expect SELECT 1, :id
SELECT id, info FROM pgautoprep_bench.test WHERE id = :id;
-- expect COMMIT
COMMIT;
