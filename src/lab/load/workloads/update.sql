\set aid random(1, :rows)
\set delta random(-5000, 5000)
-- expect UPDATE 1
UPDATE pgautoprep_bench.accounts SET abalance = abalance + :delta WHERE aid = :aid;
