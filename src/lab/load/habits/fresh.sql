\set n 0
-- expect DROP TABLE
DROP TABLE IF EXISTS pgautoprep_bench.fresh_:client_id;
-- expect BEGIN
BEGIN;
-- expect CREATE TABLE
CREATE TABLE pgautoprep_bench.fresh_:client_id (id int PRIMARY KEY, name text, at date);
-- repeat 2000
\set n :n + 1
\set day random(10, 28)
-- expect INSERT 0 1
INSERT INTO pgautoprep_bench.fresh_:client_id (id, name, at) VALUES (:n, 'name :n', '2024-02-:day');
-- end repeat
-- expect COMMIT
COMMIT;
