\set user random(1, 1998)
\set n random(1, 1000000)
-- expect BEGIN
BEGIN;
-- repeat 3
\set n :n + 1
-- expect SELECT 1, :user
SELECT auth_user.id AS auth_user_id, auth_user.username AS auth_user_username
FROM pgautoprep_bench.auth_user
WHERE auth_user.id = :user;
-- expect SAVEPOINT
SAVEPOINT sa_savepoint_1;
-- expect INSERT 0 1
INSERT INTO pgautoprep_bench.audit (what) VALUES ('attempt :n') RETURNING audit.id;
-- expect ROLLBACK
ROLLBACK TO SAVEPOINT sa_savepoint_1;
-- end repeat
-- expect COMMIT
COMMIT;
