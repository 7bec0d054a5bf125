-- Django with psycopg2, which writes the values into the text itself.
SELECT "auth_user"."id", "auth_user"."username", "auth_user"."email" FROM "auth_user" WHERE "auth_user"."id" = @user@ LIMIT 21
SELECT "auth_user"."id", "auth_user"."password", "auth_user"."last_login", "auth_user"."username" FROM "auth_user" WHERE "auth_user"."username" = 'user@user@' LIMIT 21
SELECT (1) AS "a" FROM "auth_user" WHERE "auth_user"."email" = 'user@user@@example.com' LIMIT 1
SELECT COUNT(*) AS "__count" FROM "blog_post" WHERE "blog_post"."author_id" = @user@
SELECT "blog_post"."id", "blog_post"."title" FROM "blog_post" WHERE ("blog_post"."status" = 'published' AND "blog_post"."category_id" = @category@) ORDER BY "blog_post"."published_at" DESC LIMIT 10
SELECT "blog_post"."id", "blog_post"."title" FROM "blog_post" WHERE ("blog_post"."status" = 'published' AND "blog_post"."category_id" = @category@) ORDER BY "blog_post"."published_at" DESC LIMIT 10 OFFSET @offset@
SELECT "blog_post"."id", "blog_post"."title", "auth_user"."id", "auth_user"."username" FROM "blog_post" INNER JOIN "auth_user" ON ("blog_post"."author_id" = "auth_user"."id") WHERE "blog_post"."id" = @post@ LIMIT 21
SELECT "blog_comment"."id", "blog_comment"."body" FROM "blog_comment" WHERE ("blog_comment"."approved" AND "blog_comment"."post_id" IN (@post@, @post2@, @post3@))
SELECT "blog_comment"."id", "blog_comment"."body" FROM "blog_comment" WHERE "blog_comment"."post_id" IN (@post@, @post2@, @post3@, @post4@, @post5@, @post6@, @post7@, @post8@, @post9@, @post10@)
INSERT INTO "blog_comment" ("post_id", "user_id", "body", "approved", "created_at") VALUES (@post@, @user@, 'It''s @user@', false, '2024-05-01T10:00:00+00:00'::timestamptz) RETURNING "blog_comment"."id"
INSERT INTO "blog_comment" ("post_id", "user_id", "body", "approved", "created_at") VALUES (@post@, @user@, 'first', true, '2024-05-@day@T10:00:00+00:00'::timestamptz), (@post2@, @user2@, 'second', false, '2024-05-@day@T10:00:01+00:00'::timestamptz), (@post3@, NULL, 'third', false, '2024-05-@day@T10:00:02+00:00'::timestamptz) RETURNING "blog_comment"."id"
UPDATE "auth_user" SET "last_login" = '2024-05-@day@ 10:11:12.123456+00:00'::timestamptz WHERE "auth_user"."id" = @user@
UPDATE "blog_post" SET "views" = ("blog_post"."views" + 1) WHERE "blog_post"."id" = @post@
UPDATE "blog_post" SET "title" = 'New @post@', "slug" = 'new-@post@', "body" = 'text', "status" = 'published' WHERE "blog_post"."id" = @post@
UPDATE "blog_post" SET "rating" = (CASE WHEN ("blog_post"."id" = @post@) THEN @quantity@.5 WHEN ("blog_post"."id" = @post2@) THEN 2.25 ELSE NULL END)::numeric(4, 2) WHERE "blog_post"."id" IN (@post@, @post2@)
DELETE FROM "blog_comment" WHERE "blog_comment"."id" IN (@post@)
DELETE FROM "blog_comment" WHERE "blog_comment"."id" IN (@post@, @post2@, @post3@)
SELECT "blog_category"."id", "blog_category"."name", COUNT("blog_post"."id") AS "n" FROM "blog_category" LEFT OUTER JOIN "blog_post" ON ("blog_category"."id" = "blog_post"."category_id") WHERE "blog_category"."id" < @category@ GROUP BY "blog_category"."id" ORDER BY "n" DESC, "blog_category"."id" LIMIT 5
SELECT "blog_post"."id" FROM "blog_post" WHERE UPPER("blog_post"."title"::text) LIKE UPPER('%ost @post@%') LIMIT 20
SELECT "blog_post"."id" FROM "blog_post" WHERE "blog_post"."title"::text LIKE '%ost @post@%' LIMIT 20
SELECT "sessions"."session_key", "sessions"."session_data", "sessions"."expire_date" FROM "sessions" WHERE ("sessions"."expire_date" > '2024-05-@day@ 10:00:00+00:00'::timestamptz AND "sessions"."session_key" = '@key@') LIMIT 21
SELECT EXTRACT(YEAR FROM "orders"."placed_on"), SUM("orders"."total") FROM "orders" WHERE "orders"."customer_id" = @user@ GROUP BY 1 ORDER BY 1
SELECT "blog_post"."id" FROM "blog_post" WHERE "blog_post"."published_at" IS NOT NULL AND "blog_post"."author_id" = @user@ AND NOT ("blog_post"."status" = 'draft') ORDER BY "blog_post"."id" DESC LIMIT 1
SELECT "blog_post"."id", "blog_post"."title" FROM "blog_post" WHERE ("blog_post"."author_id" = @user@ AND NOT ("blog_post"."id" IN (@post@, @post2@)))
SELECT "auth_user"."id", "auth_user"."username" FROM "auth_user" WHERE ("auth_user"."last_login" IS NULL AND "auth_user"."id" > @user@) ORDER BY "auth_user"."id" ASC LIMIT 20
SELECT "blog_post"."id", EXISTS(SELECT 1 AS "a" FROM "blog_comment" U0 WHERE (U0."post_id" = "blog_post"."id" AND U0."approved") LIMIT 1) AS "has" FROM "blog_post" WHERE "blog_post"."author_id" = @user@
SELECT "orders"."id", "orders"."total" FROM "orders" WHERE ("orders"."placed_on" >= '2024-03-@day@'::date AND "orders"."customer_id" = @user@) ORDER BY "orders"."placed_on" DESC
SELECT "orders"."id", "orders"."total" FROM "orders" WHERE "orders"."id" = '@order@'::uuid LIMIT 21
SELECT "blog_post"."id" FROM "blog_post" WHERE ("blog_post"."author_id" = @user@ AND ("blog_post"."meta" -> 'k') = '@quantity@'::jsonb)
SELECT "blog_post"."id", "blog_post"."slug" FROM "blog_post" WHERE ("blog_post"."slug"::text LIKE 'post-@post@%' OR "blog_post"."id" = @post@) ORDER BY "blog_post"."id" LIMIT 10
SELECT "auth_user"."id" FROM "auth_user" WHERE "auth_user"."id" = @user@ LIMIT 21 FOR UPDATE
BEGIN ;; SAVEPOINT "s1_x1" ;; INSERT INTO "sessions" ("session_key", "session_data", "expire_date") VALUES ('s@number@', 'data', '2024-06-@day@T00:00:00+00:00'::timestamptz) ;; RELEASE SAVEPOINT "s1_x1" ;; COMMIT
BEGIN ;; UPDATE "sessions" SET "session_data" = 'd@number@', "expire_date" = '2024-06-@day@T00:00:00+00:00'::timestamptz WHERE "sessions"."session_key" = '@key@' ;; COMMIT
