-- Written by hand in applications, and by smaller libraries.
SELECT id, title FROM blog_post WHERE author_id = @user@ AND created_at > now() - interval '7 days'
SELECT id, title FROM blog_post WHERE author_id = @user@ AND created_at > now() - '7 days'::interval
SELECT date_trunc('day', published_at) AS d, count(*) FROM blog_post WHERE author_id = @user@ GROUP BY 1 ORDER BY 1
SELECT id FROM blog_post WHERE tags @> ARRAY['t@quantity@']::text[] AND author_id = @user@
SELECT row_number() OVER (ORDER BY views DESC, id) AS rn, id FROM blog_post WHERE author_id = @user@ LIMIT 3
SELECT id FROM orders WHERE customer_id = @user@ FOR UPDATE
SELECT id FROM orders WHERE customer_id = @user@ ORDER BY placed_on, id LIMIT 1 FOR UPDATE SKIP LOCKED
SELECT u.id, p.cnt FROM auth_user u CROSS JOIN LATERAL (SELECT count(*) AS cnt FROM blog_post b WHERE b.author_id = u.id AND b.views > @category@) p WHERE u.id = @user@
SELECT id FROM blog_post WHERE title ILIKE '%hello%' AND author_id = @user@
UPDATE orders SET state = 'sent', version = version + 1 WHERE id = '@order@' AND version = @quantity@
INSERT INTO order_items (order_id, sku, quantity, price) VALUES ('@order@', 'A', 1, 1.00), ('@order@', 'B', 2, 2.50), ('@order@', 'C', @quantity@, 3)
SELECT string_agg(sku, ',' ORDER BY id) FROM order_items WHERE order_id = '@order@'
SELECT id, total FROM orders WHERE customer_id = @user@ AND total > 10.5 AND placed_on >= '2024-02-@day@' ORDER BY total DESC, id LIMIT 20
SELECT p.id, p.title, (SELECT count(*) FROM blog_comment c WHERE c.post_id = p.id) AS comments FROM blog_post p WHERE p.author_id = @user@ ORDER BY p.id
SELECT json_build_object('id', id, 'name', username) FROM auth_user WHERE id = @user@
WITH moved AS (DELETE FROM order_items WHERE id = @post@ RETURNING order_id, sku, quantity, price) INSERT INTO order_items (order_id, sku, quantity, price) SELECT order_id, sku, quantity, price FROM moved
WITH up AS (UPDATE blog_post SET views = views + @quantity@ WHERE id = @post@ RETURNING id, views) SELECT id, views FROM up
UPDATE blog_post AS p SET views = v.views FROM (VALUES (@post@, 1), (@post2@, 2)) AS v (id, views) WHERE p.id = v.id
DELETE FROM blog_comment c USING blog_post p WHERE p.id = c.post_id AND p.author_id = @user@ AND c.approved = false
INSERT INTO blog_comment (post_id, user_id, body) SELECT id, author_id, 'copied' FROM blog_post WHERE author_id = @user@ LIMIT 2
SELECT username, lag(id, 1) OVER (ORDER BY id) AS before FROM auth_user WHERE id BETWEEN @user@ AND @user@ + 3 ORDER BY id
SELECT to_char(placed_on, 'YYYY-MM') AS month, sum(total) FROM orders WHERE customer_id = @user@ GROUP BY to_char(placed_on, 'YYYY-MM') ORDER BY month
SELECT id FROM blog_post WHERE (author_id, category_id) = (@user@, @category@)
SELECT id, title FROM blog_post WHERE (published_at, id) < ('2024-05-@day@ 00:00:00+00', @post@) AND status = 'published' ORDER BY published_at DESC, id DESC LIMIT 10
SELECT o.id, jsonb_agg(i.sku ORDER BY i.id) FROM orders o JOIN order_items i ON i.order_id = o.id WHERE o.id = '@order@' GROUP BY o.id
SELECT count(DISTINCT user_id) FROM blog_comment WHERE post_id BETWEEN @post@ AND @post@ + 20
SELECT id FROM auth_user WHERE lower(email) = lower('User@user@@Example.com') AND is_active
SELECT COALESCE((SELECT max(views) FROM blog_post WHERE author_id = @user@), 0) AS views
SELECT u.username, o.total FROM auth_user u LEFT JOIN orders o ON o.customer_id = u.id AND o.state = 'paid' WHERE u.id = @user@ ORDER BY o.total DESC NULLS LAST, o.id
INSERT INTO sessions VALUES ('x@number@', E'a\tb', '2024-09-@day@ 00:00:00+02') ON CONFLICT (session_key) DO UPDATE SET session_data = 'again' WHERE sessions.expire_date < '2024-05-@day@ 00:00:00+00'
SELECT generate_series(1, @quantity@) AS n
SELECT id FROM blog_post WHERE author_id = @user@ AND rating IS DISTINCT FROM 2.5
SELECT id, name FROM blog_category WHERE parent_id IS NULL OR id = @category@ ORDER BY name
SELECT id FROM blog_post WHERE author_id = @user@ ORDER BY CASE WHEN status = 'draft' THEN 0 ELSE 1 END, id
SELECT user_id, count(*) FROM blog_comment WHERE post_id IN (SELECT id FROM blog_post WHERE author_id = @user@) GROUP BY user_id HAVING count(*) > 0 ORDER BY count(*) DESC, user_id
SELECT count(*) FROM blog_category
SELECT id, name, slug FROM blog_category ORDER BY name
SELECT id, name FROM blog_category WHERE parent_id IS NULL
SELECT max(expire_date) FROM sessions
SELECT session_key FROM sessions WHERE expire_date < now()
SELECT DISTINCT state FROM orders
SELECT c.name, count(p.id) FROM blog_category c LEFT JOIN blog_post p ON p.category_id = c.id GROUP BY c.id ORDER BY c.name
UPDATE blog_category SET name = name WHERE parent_id IS NULL
