\set user random(1, 1998)
\set post random(1, 4990)
\set comment (:post + 4998) % 5000 + 1
\set seen random(5001, 9990)
\set n random(1, 1000000)
-- expect BEGIN
BEGIN;
-- expect SAVEPOINT
SAVEPOINT "s140205_x:n";
-- expect SELECT 1, :user
SELECT "auth_user"."id", "auth_user"."username", "auth_user"."email" FROM "pgautoprep_bench"."auth_user" WHERE "auth_user"."id" = :user LIMIT 21;
-- expect RELEASE
RELEASE SAVEPOINT "s140205_x:n";
\set n :n + 1
-- expect SAVEPOINT
SAVEPOINT "s140205_x:n";
-- expect SELECT 2, :comment
SELECT "blog_comment"."id", "blog_comment"."body", "auth_user"."username" FROM "pgautoprep_bench"."blog_comment" LEFT OUTER JOIN "pgautoprep_bench"."auth_user" ON ("blog_comment"."user_id" = "auth_user"."id") WHERE "blog_comment"."post_id" = :post ORDER BY "blog_comment"."id" ASC;
-- expect RELEASE
RELEASE SAVEPOINT "s140205_x:n";
\set n :n + 1
-- expect SAVEPOINT
SAVEPOINT "s140205_x:n";
-- expect UPDATE 1
UPDATE "pgautoprep_bench"."blog_post" SET "views" = ("blog_post"."views" + 1) WHERE "blog_post"."id" = :seen;
-- expect RELEASE
RELEASE SAVEPOINT "s140205_x:n";
-- expect COMMIT
COMMIT;
