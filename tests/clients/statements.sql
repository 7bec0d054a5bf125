INSERT INTO every VALUES (@n@, true, 12, 900000000@n@, 12.345, 1.5, 2.25e10, 'it''s \ text', 'vc@n@', 'ab', '\xdeadbeef', '2020-02-29', '12:34:56.789', '2020-02-29 12:34:56', '2020-02-29 12:34:56+02', '1 day 02:03:04', '3', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"a": 1}', '{"b": [1, 2, @n@]}', '{1,2,@n@}', '{"x","y z",NULL}', 'happy', @n@, 'abc', '(1,"two")', '[1,@n@9)', '192.168.0.@n@/24', '08:00:2b:01:02:03', B'101', 'a fat cat', '12.34')
SELECT * FROM every WHERE id = @n@
SELECT id, b, d FROM every WHERE d = '2020-02-29' AND b = 't' AND id <= @n@ ORDER BY id
SELECT id FROM every WHERE tz > '2020-02-29 00:00:00+00' AND ts < '2021-01-01' AND ti > '12:00' AND id = @n@
SELECT id, iv, ivd FROM every WHERE iv > '1 hour' AND ivd = '3' AND id = @n@
SELECT jb -> 'b' -> 2 AS third, jb ->> 'b' AS list, j ->> 'a' FROM every WHERE jb @> '{"b": [@n@]}' ORDER BY id
SELECT id FROM every WHERE ia && '{1,@n@}' AND @n@ = ANY (ia) AND ta[2] = 'y z' ORDER BY id
SELECT id, m, p, (p).b FROM every WHERE m = 'happy' AND m > 'sad' AND r @> 1@n@ AND id = @n@
SELECT id, by, u FROM every WHERE by = '\xdeadbeef' AND u = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' AND id = @n@
SELECT id, ip, mac, b3, mo FROM every WHERE ip << '192.168.0.0/16' AND mac = '08:00:2b:01:02:03' AND b3 = B'101' AND mo > '1.00' AND id = @n@
SELECT id, t, vc, c FROM every WHERE t LIKE '%\\%' AND vc = 'vc@n@' AND c = 'ab   ' AND tv @@ to_tsquery('simple', 'cat')
SELECT id FROM every WHERE pos = @n@ AND sh = 'abc' AND n = 12.345 AND f4 = 1.5 AND f8 = 2.25e10 AND i8 = 900000000@n@
SELECT NULL, 'literal', @n@, 1.0, 1e3, -5, - 7, true, 'x' AS named, 9000000000, 'now'::text
SELECT 'ünï → ☃ 𝄞 @n@' AS "naïve", E'tab\t nl\n q\' u\u00e9', $q$it's @n@$q$, 'a' 'b'
SELECT U&'\0441\043b', @n@
SELECT 'one'
SELECT id, name, price FROM items WHERE id IN (@n@, 1@n@, 2@n@, 99@n@) ORDER BY 1
SELECT kind, count(*), min(name) FROM items WHERE id < 100 + @n@ GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3 OFFSET 1
SELECT DISTINCT ON (kind) kind, id FROM items WHERE id > @n@ ORDER BY kind, id DESC
SELECT id, row_number() OVER (ORDER BY price DESC), lag(id, 1, -1) OVER (ORDER BY id) FROM items WHERE id BETWEEN @n@ AND @n@ + 3 ORDER BY id
SELECT i.id, e.t FROM items i LEFT JOIN every e ON e.id = i.id AND e.m = 'happy' WHERE i.id < @n@ + 4 AND coalesce(e.vc, 'none') <> 'x' ORDER BY i.id
SELECT id FROM items WHERE id = @n@ UNION ALL SELECT 1000 + @n@ UNION SELECT 7 ORDER BY 1
SELECT CASE WHEN id % 2 = 0 THEN 'even' ELSE 'odd' END, nullif(kind, @n@), greatest(id, 5), round(price, 1) FROM items WHERE name = 'item @n@'
SELECT date '2020-01-31' + interval '1 month', timestamp '2020-01-01 00:00' AT TIME ZONE 'UTC', @n@::text || 'x', cast('12' AS int) + @n@
VALUES (@n@, 'a'), (2, NULL), (3, 'c')
WITH big AS (SELECT * FROM items WHERE price > 99.5) SELECT count(*), sum(price) FROM big WHERE kind = @n@ % 7
UPDATE items SET name = 'renamed @n@', price = price + 0.5 WHERE id = 50@n@ RETURNING id, name, price
UPDATE items SET price = DEFAULT WHERE id = 60@n@
DELETE FROM items WHERE id = 70@n@
DELETE FROM items WHERE id = 70@n@ RETURNING *
INSERT INTO items VALUES (50@n@, 'conflict', 1, 2) ON CONFLICT (id) DO UPDATE SET name = excluded.name || ' @n@' WHERE items.id > 5
INSERT INTO items (id, name) VALUES (200@n@, 'a'), (210@n@, 'b') RETURNING id, name, price
WITH moved AS (DELETE FROM items WHERE id = 210@n@ RETURNING *) INSERT INTO items SELECT id + 1000, name, 3 FROM moved RETURNING id
SELECT shout('hey @n@'), divide(1@n@, 2)
SELECT divide(@n@, 0)
SELECT @n@ / 0
SELECT id FROM items WHERE id = '@n@'
SELECT 'ü', id FROM items WHERE id = '@n@' AND kind = 2
SELECT id FROM items WHERE id = @n@ /* ünd */ AND 'é' <> name AND price > '0.01' AND kind = '@n@'
SELECT id FROM items WHERE id = @n@ /* other ünd */ AND 'é' <> name AND price > '0.01' AND kind = 'many'
INSERT INTO every (id, pos) VALUES (30@n@, @n@)
INSERT INTO every (id, sh) VALUES (31@n@, 'ok')
INSERT INTO every (id, vc) VALUES (32@n@, 'short')
INSERT INTO every (id, m) VALUES (33@n@, 'sad')
INSERT INTO every (id, jb) VALUES (34@n@, '{"whole": @n@}')
INSERT INTO every (id, d) VALUES (35@n@, '2020-02-0@n@')
SELECT 10 / @n@
SELECT 10 / (@n@ - 1)
SELECT divide(1@n@, @n@)
SELECT id FROM items WHERE id = 1 AND name = 'ü' || 1 / (@n@ - 2)
SELECT id FROM items WHERE id = 'abc@n@'
SELECT 'ü', id FROM items WHERE id = 'é@n@' AND kind = 2
SELECT id FROM items WHERE id = 99999999999999999999@n@
SELECT 1 + '4000000000' + @n@
INSERT INTO items VALUES (@n@, 'duplicate', 1, 1)
INSERT INTO items VALUES (300@n@, NULL, 1, 1)
INSERT INTO child VALUES (@n@, 4000, 'dangling')
INSERT INTO child VALUES (@n@, @n@, 'fine')
INSERT INTO every (id, pos) VALUES (40@n@, -@n@)
INSERT INTO every (id, sh) VALUES (40@n@, 'too long @n@')
INSERT INTO every (id, vc) VALUES (40@n@, 'longer than ten @n@')
INSERT INTO every (id, m) VALUES (40@n@, 'angry')
INSERT INTO every (id, jb) VALUES (40@n@, '{"broken": @n@')
INSERT INTO every (id, d) VALUES (40@n@, '2020-02-3@n@')
UPDATE every SET mo = 12 WHERE id = 90@n@
UPDATE every SET mo = 99999999999999999999 WHERE id = 90@n@
UPDATE every SET f4 = 1.5 WHERE id = 90@n@
UPDATE every SET f4 = 1.5e300 WHERE id = 90@n@
UPDATE every SET sh = 'ok' WHERE id = 90@n@
UPDATE every SET sh = 'too long' WHERE id = 90@n@
UPDATE every SET c = 'ab' WHERE id = 90@n@
UPDATE every SET c = 'abcdefg' WHERE id = 90@n@
UPDATE every SET i2 = @n@ WHERE id = 90@n@
UPDATE every SET i2 = 70000 WHERE id = 90@n@
UPDATE every SET n = 1.5 WHERE id = 90@n@
UPDATE every SET n = 1234567890123.5 WHERE id = 90@n@
UPDATE every SET vc = 'ok' WHERE id = 90@n@
UPDATE every SET vc = 'longer than ten @n@' WHERE id = 90@n@
SELECT missing FROM items WHERE id = @n@
SELECT * FROM missing WHERE id = @n@
SELECT nosuch(@n@, 'x')
BEGIN
INSERT INTO items VALUES (400@n@, 'in a transaction', 1, 1)
SAVEPOINT a
INSERT INTO items VALUES (400@n@, 'again', 1, 1)
SELECT 'fails', @n@
ROLLBACK TO SAVEPOINT a
SELECT id, name FROM items WHERE id = 400@n@
UPDATE items SET kind = 5 WHERE id = 400@n@
COMMIT
BEGIN
SELECT 'ü', id FROM items WHERE id = '1@n@' AND kind = 2
SELECT 'ü', id FROM items WHERE id = 'zz@n@' AND kind = 2
SELECT 1
ROLLBACK
BEGIN
SELECT id FROM items WHERE id = 'first@n@'
COMMIT
BEGIN
SELECT 10 / (@n@ - 3)
SAVEPOINT b
INSERT INTO every (id, jb) VALUES (34@n@, '{"whole": ')
ROLLBACK TO SAVEPOINT b
INSERT INTO every (id, m) VALUES (36@n@, 'angry')
ROLLBACK
START TRANSACTION ISOLATION LEVEL SERIALIZABLE
SELECT count(*) FROM items WHERE kind = @n@
INSERT INTO child VALUES (50@n@, 5000, 'dangling until commit')
COMMIT
BEGIN
DECLARE cur CURSOR FOR SELECT id FROM items WHERE id < 1@n@ ORDER BY id
FETCH 5 FROM cur
MOVE 2 IN cur
FETCH ALL FROM cur
SELECT id FROM items WHERE id = @n@
CLOSE cur
COMMIT
EXPLAIN (COSTS OFF) SELECT * FROM items WHERE id = @n@
SHOW datestyle
SELECT name FROM items WHERE id = @n@ FOR UPDATE
SELECT count(*) FROM generate_series(1, 100@n@) AS g WHERE g % 3 = 1
