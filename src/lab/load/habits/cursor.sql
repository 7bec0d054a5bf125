\set from random(1, 4900)
\set first :from + 1
\set post random(1, 4990)
\set comment (:post + 4998) % 5000 + 1
\set seen random(5001, 9990)
-- expect BEGIN
BEGIN;
-- expect DECLARE CURSOR
DECLARE "posts" CURSOR WITHOUT HOLD FOR SELECT id, title FROM pgautoprep_bench.blog_post WHERE id > :from ORDER BY id LIMIT 20;
-- expect FETCH 10, :first
FETCH FORWARD 10 FROM "posts";
-- expect SELECT 2, :comment
SELECT "blog_comment"."id", "blog_comment"."body", "auth_user"."username" FROM "pgautoprep_bench"."blog_comment" LEFT OUTER JOIN "pgautoprep_bench"."auth_user" ON ("blog_comment"."user_id" = "auth_user"."id") WHERE "blog_comment"."post_id" = :post ORDER BY "blog_comment"."id" ASC;
-- expect FETCH 10
FETCH FORWARD 10 FROM "posts";
-- repeat 3
\set seen :seen + 1
-- expect UPDATE 1
UPDATE "pgautoprep_bench"."blog_post" SET "views" = ("blog_post"."views" + 1) WHERE "blog_post"."id" = :seen;
-- end repeat
-- expect CLOSE CURSOR
CLOSE "posts";
-- expect COMMIT
COMMIT;
