\set key random(1000, 2999)
\set usec random(100000, 999999)
\set user random(1, 1998)
\set friend :user + 1
\set post random(1, 4990)
\set second :post + 1
\set third :post + 2
\set comment (:post + 4998) % 5000 + 1
\set comment2 (:post + 4999) % 5000 + 1
\set comment3 (:post + 5000) % 5000 + 1
-- expect SELECT 1, 0000000000000000000000000000:key
SELECT "django_session"."session_key", "django_session"."session_data" FROM "pgautoprep_bench"."django_session" WHERE ("django_session"."expire_date" > '2024-05-01 10:11:12.:usec+00:00'::timestamptz AND "django_session"."session_key" = '0000000000000000000000000000:key') LIMIT 21;
-- expect SELECT 1, :user
SELECT "auth_user"."id", "auth_user"."username", "auth_user"."email" FROM "pgautoprep_bench"."auth_user" WHERE "auth_user"."id" = :user LIMIT 21;
-- expect SELECT 1, :friend
SELECT "auth_user"."id", "auth_user"."username", "auth_user"."email" FROM "pgautoprep_bench"."auth_user" WHERE "auth_user"."id" = :friend LIMIT 21;
-- expect SELECT 2, :comment
SELECT "blog_comment"."id", "blog_comment"."body", "auth_user"."username" FROM "pgautoprep_bench"."blog_comment" LEFT OUTER JOIN "pgautoprep_bench"."auth_user" ON ("blog_comment"."user_id" = "auth_user"."id") WHERE "blog_comment"."post_id" = :post ORDER BY "blog_comment"."id" ASC;
-- expect SELECT 2, :comment2
SELECT "blog_comment"."id", "blog_comment"."body", "auth_user"."username" FROM "pgautoprep_bench"."blog_comment" LEFT OUTER JOIN "pgautoprep_bench"."auth_user" ON ("blog_comment"."user_id" = "auth_user"."id") WHERE "blog_comment"."post_id" = :second ORDER BY "blog_comment"."id" ASC;
-- expect SELECT 2, :comment3
SELECT "blog_comment"."id", "blog_comment"."body", "auth_user"."username" FROM "pgautoprep_bench"."blog_comment" LEFT OUTER JOIN "pgautoprep_bench"."auth_user" ON ("blog_comment"."user_id" = "auth_user"."id") WHERE "blog_comment"."post_id" = :third ORDER BY "blog_comment"."id" ASC;
