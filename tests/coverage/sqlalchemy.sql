-- SQLAlchemy with psycopg2.
SELECT auth_user.id AS auth_user_id, auth_user.username AS auth_user_username FROM auth_user WHERE auth_user.username = 'user@user@' LIMIT 1
SELECT blog_post.id AS blog_post_id, blog_post.title AS blog_post_title FROM blog_post WHERE blog_post.author_id = @user@ AND blog_post.status IN ('published', 'draft') ORDER BY blog_post.created_at DESC LIMIT 20
SELECT count(*) AS count_1 FROM (SELECT blog_post.id AS blog_post_id FROM blog_post WHERE blog_post.category_id = @category@) AS anon_1
INSERT INTO auth_user (username, first_name, last_name, email, password, is_active, date_joined) VALUES ('n@number@', 'A', 'B', 'a@number@@b.c', 'x', true, '2024-05-@day@T00:00:00+00:00') RETURNING auth_user.id
UPDATE auth_user SET first_name='Z@user@', is_active=false WHERE auth_user.id = @user@
DELETE FROM blog_comment WHERE blog_comment.id = @post@
SELECT anon_1.id, b.body FROM (SELECT blog_post.id AS id FROM blog_post WHERE blog_post.author_id = @user@ LIMIT 5) AS anon_1 LEFT OUTER JOIN blog_comment AS b ON b.post_id = anon_1.id
SELECT blog_post.id, coalesce(blog_post.rating, 0) AS r FROM blog_post WHERE blog_post.author_id = @user@ AND blog_post.rating >= 1.5
SELECT EXISTS (SELECT 1 FROM blog_post WHERE blog_post.slug = 'post-@post@') AS anon_1
WITH t AS (SELECT id FROM blog_post WHERE author_id = @user@) SELECT count(*) FROM blog_comment WHERE post_id IN (SELECT id FROM t)
INSERT INTO sessions (session_key, session_data, expire_date) VALUES ('@key@', 'data', '2024-06-@day@ 00:00:00+00') ON CONFLICT (session_key) DO UPDATE SET session_data = excluded.session_data, expire_date = excluded.expire_date
INSERT INTO sessions (session_key, session_data, expire_date) VALUES ('@key@', 'data', '2024-06-@day@ 00:00:00+00') ON CONFLICT DO NOTHING
SELECT blog_post.id FROM blog_post WHERE blog_post.author_id = @user@ AND (blog_post.id NOT IN (@post@, @post2@, @post3@))
SELECT blog_post.id, row_number() OVER (PARTITION BY blog_post.category_id ORDER BY blog_post.views DESC, blog_post.id) AS rank FROM blog_post WHERE blog_post.author_id = @user@
SELECT anon_1.id FROM (SELECT blog_post.id AS id, rank() OVER (PARTITION BY blog_post.author_id ORDER BY blog_post.views DESC) AS r FROM blog_post WHERE blog_post.author_id IN (@user@, @user2@)) AS anon_1 WHERE anon_1.r <= 3
WITH RECURSIVE tree(id, parent_id) AS (SELECT blog_category.id, blog_category.parent_id FROM blog_category WHERE blog_category.id = @category@ UNION ALL SELECT c.id, c.parent_id FROM blog_category AS c JOIN tree ON c.id = tree.parent_id) SELECT tree.id FROM tree
SELECT blog_post.id FROM blog_post WHERE blog_post.author_id = @user@ UNION SELECT blog_comment.post_id FROM blog_comment WHERE blog_comment.user_id = @user@ ORDER BY id
SELECT blog_post.id, blog_post.meta ->> 'lang' AS lang FROM blog_post WHERE blog_post.author_id = @user@ AND (blog_post.meta ->> 'lang') = 'en'
SELECT blog_post.id FROM blog_post WHERE blog_post.meta @> '{"k": @quantity@}' AND blog_post.author_id = @user@
SELECT sum(orders.total) FILTER (WHERE orders.state = 'paid') AS paid, count(*) AS n FROM orders WHERE orders.customer_id = @user@
SELECT CAST(orders.total AS VARCHAR) AS total FROM orders WHERE orders.id = '@order@'::uuid
SELECT orders.id, CASE WHEN (orders.total > @offset@) THEN 'large' ELSE 'small' END AS size FROM orders WHERE orders.customer_id = @user@
SELECT blog_post.id FROM blog_post WHERE blog_post.author_id = ANY (ARRAY[@user@, @user2@]) ORDER BY blog_post.id
UPDATE blog_post SET meta = jsonb_set(blog_post.meta, '{k}', '@quantity@') WHERE blog_post.id = @post@ RETURNING blog_post.meta
SELECT auth_user.id FROM auth_user WHERE (auth_user.first_name || ' ' || auth_user.last_name) = 'F@user@ ' AND auth_user.id = @user@
SELECT blog_post.id FROM blog_post, auth_user WHERE blog_post.author_id = auth_user.id AND auth_user.username = 'user@user@' AND blog_post.views BETWEEN 0 AND 5000 ORDER BY blog_post.id LIMIT 10 OFFSET 0
BEGIN ;; SAVEPOINT sa_savepoint_1 ;; INSERT INTO blog_comment (post_id, user_id, body, approved) VALUES (@post@, @user@, 'b@number@', true) RETURNING blog_comment.id ;; RELEASE SAVEPOINT sa_savepoint_1 ;; COMMIT
