\set some random(1, 1990)
\set n random(0, 1000)
-- expect BEGIN
BEGIN;
-- expect CREATE TABLE
CREATE TEMP TABLE wanted (id int, n int) ON COMMIT DROP;
-- repeat 5
\set some :some + 1
\set n :n + 1
-- expect INSERT 0 1
INSERT INTO wanted (id, n) VALUES (:some, :n);
-- end repeat
-- expect SELECT 5
SELECT u.id, u.username, w.n FROM wanted w JOIN pgautoprep_bench.auth_user u ON u.id = w.id WHERE w.n <= :n ORDER BY w.n;
