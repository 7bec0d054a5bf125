\set a random(1, :rows - 40)
\set b :a + 3
\set c :a + 5
\set d :a + 9
\set e :a + 12
\set f :a + 17
\set g :a + 21
\set h :a + 33
-- expect SELECT 8, :a
SELECT aid, abalance FROM pgautoprep_bench.accounts
WHERE aid IN (:a, :b, :c, :d, :e, :f, :g, :h) AND bid > 0 ORDER BY aid LIMIT 20;
