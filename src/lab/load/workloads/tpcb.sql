\set aid random(1, :rows)
\set bid random(1, 10)
\set tid random(1, 100)
\set delta random(-5000, 5000)
-- expect BEGIN
BEGIN;
-- expect UPDATE 1
UPDATE pgautoprep_bench.accounts SET abalance = abalance + :delta WHERE aid = :aid;
-- expect SELECT 1
SELECT abalance FROM pgautoprep_bench.accounts WHERE aid = :aid;
-- expect UPDATE 1
UPDATE pgautoprep_bench.tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
-- expect UPDATE 1
UPDATE pgautoprep_bench.branches SET bbalance = bbalance + :delta WHERE bid = :bid;
-- expect INSERT 0 1
INSERT INTO pgautoprep_bench.history (tid, bid, aid, delta, mtime)
VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
-- expect COMMIT
END;
