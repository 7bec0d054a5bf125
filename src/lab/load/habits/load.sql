\set clock random(1700000000, 1800000000)
-- expect BEGIN
BEGIN;
-- repeat 2000
\set item random(1001, 2000)
\set ns random(1, 999999999)
\set clock :clock + 1
-- expect INSERT 0 1
INSERT INTO pgautoprep_bench.history_uint (itemid, clock, ns, value) VALUES (:item, :clock, :ns, :item);
-- end repeat
-- expect COMMIT
COMMIT;
