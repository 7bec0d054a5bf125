-- Rails with prepared_statements: false, and with query log tags.
SELECT "users".* FROM "auth_user" "users" WHERE "users"."username" = 'user@user@' LIMIT 1
SELECT 1 AS one FROM "auth_user" WHERE "auth_user"."email" = 'user@user@@example.com' AND "auth_user"."id" != @user@ LIMIT 1
SELECT "blog_post".* FROM "blog_post" WHERE "blog_post"."author_id" = @user@ AND "blog_post"."status" = 'published' ORDER BY "blog_post"."created_at" DESC LIMIT 25 OFFSET 0 /*application:Blog,controller:posts,action:index*/
SELECT "blog_post".* FROM "blog_post" WHERE "blog_post"."id" = @post@ LIMIT 1
SELECT COUNT(*) FROM "blog_comment" WHERE "blog_comment"."post_id" = @post@
SELECT "blog_comment".* FROM "blog_comment" WHERE "blog_comment"."post_id" = @post@ AND "blog_comment"."approved" = TRUE ORDER BY "blog_comment"."id" ASC LIMIT 100
INSERT INTO "blog_post" ("title", "slug", "body", "author_id", "category_id", "rating", "created_at", "updated_at", "meta") VALUES ('Hello @post@', 'hello-@post@', 'Body', @user@, @category@, 3.5, '2024-05-@day@ 10:00:00', '2024-05-@day@ 10:00:00', '{"a": @post@}') RETURNING "id"
UPDATE "blog_post" SET "views" = COALESCE("views", 0) + 1, "updated_at" = '2024-05-@day@ 11:00:00' WHERE "blog_post"."id" = @post@
UPDATE "blog_post" SET "meta" = '{"k":@quantity@,"lang":"de"}', "tags" = '{a,b@quantity@}', "updated_at" = '2024-05-@day@ 11:00:00.123456' WHERE "blog_post"."id" = @post@
DELETE FROM "sessions" WHERE "sessions"."session_key" = '@key@'
SELECT "blog_post"."category_id", COUNT(*) AS count_all FROM "blog_post" WHERE "blog_post"."author_id" = @user@ GROUP BY "blog_post"."category_id"
SELECT DISTINCT "blog_post".* FROM "blog_post" INNER JOIN "blog_comment" ON "blog_comment"."post_id" = "blog_post"."id" WHERE "blog_comment"."user_id" = @user@ AND "blog_post"."id" < @post@ ORDER BY "blog_post"."id" LIMIT 10
SELECT SUM("order_items"."price" * "order_items"."quantity") FROM "order_items" WHERE "order_items"."order_id" = '@order@'
SELECT "blog_post".* FROM "blog_post" WHERE (meta->>'k' = '@quantity@') AND "blog_post"."author_id" = @user@
SELECT "blog_post".* FROM "blog_post" WHERE "blog_post"."author_id" = @user@ AND ('t@quantity@' = ANY (tags))
SELECT "auth_user"."id" FROM "auth_user" WHERE "auth_user"."id" BETWEEN @user@ AND @user@+10 ORDER BY "auth_user"."id" ASC
SELECT "blog_post"."id", "blog_post"."title" FROM "blog_post" WHERE "blog_post"."author_id" = @user@ AND "blog_post"."category_id" IS NULL
SELECT "blog_post".* FROM "blog_post" WHERE "blog_post"."author_id" = @user@ AND "blog_post"."status" NOT IN ('draft', 'hidden') AND "blog_post"."id" != @post@ ORDER BY "blog_post"."id" DESC LIMIT 5
SELECT MAX("blog_post"."views") FROM "blog_post" WHERE "blog_post"."category_id" = @category@
SELECT AVG("orders"."total") FROM "orders" WHERE "orders"."customer_id" = @user@ AND "orders"."state" IN ('paid', 'sent')
SELECT "orders".* FROM "orders" WHERE "orders"."placed_on" BETWEEN '2024-01-@day@' AND '2024-02-@day@' AND "orders"."customer_id" = @user@ ORDER BY "orders"."placed_on" ASC, "orders"."id" ASC
SELECT "blog_comment".* FROM "blog_comment" LEFT OUTER JOIN "auth_user" ON "auth_user"."id" = "blog_comment"."user_id" WHERE "blog_comment"."post_id" = @post@ AND "auth_user"."is_active" = TRUE ORDER BY "blog_comment"."created_at" DESC, "blog_comment"."id" DESC LIMIT 20 OFFSET 0
INSERT INTO "sessions" ("session_key","session_data","expire_date") VALUES ('@key@', 'r@number@', '2024-07-@day@ 00:00:00') ON CONFLICT ("session_key") DO UPDATE SET "session_data"=excluded."session_data","expire_date"=excluded."expire_date" RETURNING "session_key"
INSERT INTO "order_items" ("order_id","sku","quantity","price") VALUES ('@order@', 'A', 1, 1.0), ('@order2@', 'B', @quantity@, 2.5) ON CONFLICT DO NOTHING RETURNING "id"
SELECT "orders".* FROM "orders" WHERE "orders"."id" = '@order@' LIMIT 1 FOR UPDATE
SELECT "auth_user".* FROM "auth_user" WHERE "auth_user"."id" = @user@ LIMIT 1 /*application='Shop',controller='orders',action='show'*/
SELECT "blog_post"."id" FROM "blog_post" WHERE "blog_post"."title" ILIKE '%post @post@%' ORDER BY "blog_post"."id" ASC LIMIT 10
BEGIN ;; UPDATE "orders" SET "state" = 'paid', "version" = @quantity@ WHERE "orders"."id" = '@order@' ;; INSERT INTO "order_items" ("order_id", "sku", "quantity", "price") VALUES ('@order@', 'SKU@quantity@', @quantity@, 12.5) RETURNING "id" ;; COMMIT
BEGIN ;; SAVEPOINT active_record_1 ;; DELETE FROM "blog_comment" WHERE "blog_comment"."id" = @post@ ;; RELEASE SAVEPOINT active_record_1 ;; COMMIT
