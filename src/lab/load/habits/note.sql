\set tenant random(0, 4)
\set note :tenant + 5 * random(1, 399)
-- expect SET
SET LOCAL app.tenant = ':tenant';
-- expect SELECT 1, :note
SELECT id, note FROM pgautoprep_bench.my_note WHERE id = :note;
