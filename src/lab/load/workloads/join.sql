\set aid random(1, :rows)
-- expect SELECT 1, :aid
SELECT a.aid, a.abalance, b.bbalance, t.tbalance, c.info,
  (SELECT count(*) FROM pgautoprep_bench.history h WHERE h.aid = a.aid AND h.delta > 10) AS n
FROM pgautoprep_bench.accounts a
  JOIN pgautoprep_bench.branches b ON b.bid = a.bid
  JOIN pgautoprep_bench.test c ON c.id = a.aid
  LEFT JOIN pgautoprep_bench.tellers t ON t.bid = b.bid AND t.tid = 3
WHERE a.aid = :aid AND a.abalance BETWEEN -1000000000 AND 1000000000
  AND a.filler LIKE '%' AND b.bid IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
ORDER BY a.aid LIMIT 10;
