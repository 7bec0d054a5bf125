\set zone random(1, 3)
\set day random(10, 28)
\set someone random(1, 2000)
-- expect SET
SET TIME ZONE 'Etc/GMT+:zone';
-- expect UPDATE 1
UPDATE pgautoprep_bench.auth_user SET last_login = '2024-05-:day 10:11:12' WHERE id = :someone;
-- expect SELECT 1, :someone
SELECT id, last_login FROM pgautoprep_bench.auth_user WHERE id = :someone;
