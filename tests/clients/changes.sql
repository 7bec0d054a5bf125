CREATE TEMP TABLE temp_@n@ (a int, b varchar(3))
INSERT INTO temp_@n@ VALUES (@n@, 'abc')
SELECT * FROM temp_@n@ WHERE a = @n@ AND b = 'abc'
DROP TABLE temp_@n@
SELECT id, price FROM items WHERE price = '10.@n@'
ALTER TABLE items ALTER COLUMN price TYPE float8
SELECT id, price FROM items WHERE price = '10.@n@'
ALTER TABLE items ALTER COLUMN price TYPE numeric
SELECT id, price FROM items WHERE price = '10.@n@'
SELECT * FROM items WHERE id = @n@
ALTER TABLE items ADD COLUMN extra text DEFAULT 'e@n@'
SELECT * FROM items WHERE id = @n@
ALTER TABLE items DROP COLUMN extra
SET datestyle = 'German, DMY'
SELECT d, ts, iv FROM every WHERE d = '29.02.2020' AND id = @n@
RESET datestyle
SET timezone = 'Asia/Tokyo'
SELECT tz FROM every WHERE tz = '2020-02-29 19:34:56' AND id = @n@
RESET timezone
SET bytea_output = 'escape'
SELECT by, id FROM every WHERE id = @n@
RESET bytea_output
CREATE FUNCTION divide(a int, b text) RETURNS text LANGUAGE sql AS $$ SELECT 'text ' || b $$
SELECT divide(8, '2'), divide(@n@, 4)
DROP FUNCTION divide(int, text)
SELECT divide(8, '2'), divide(@n@, 4)
BEGIN
ALTER TABLE items RENAME COLUMN kind TO sort
SELECT id, sort FROM items WHERE id = @n@
SELECT id, kind FROM items WHERE id = @n@
ROLLBACK
SELECT id, kind FROM items WHERE id = @n@
CREATE SCHEMA other
CREATE TABLE other.items (id int, name text)
INSERT INTO other.items VALUES (@n@, 'from the other schema')
SET search_path = other, public
SELECT id, name FROM items WHERE id = @n@
RESET search_path
SELECT id, name FROM items WHERE id = @n@
DROP SCHEMA other CASCADE
CREATE RULE quiet AS ON DELETE TO items WHERE old.id = 1@n@ DO INSTEAD NOTHING
DELETE FROM items WHERE id = 1@n@
DROP RULE quiet ON items
SELECT id FROM items WHERE id = 1@n@
TRUNCATE child
INSERT INTO child VALUES (@n@, @n@, 'after')
SELECT note FROM child WHERE id = @n@
DO $$ BEGIN PERFORM 1; END $$
SELEC @n@
PREPARE mine (int) AS SELECT $1 + 1 AS next
EXECUTE mine (@n@)
DEALLOCATE mine
SELECT set_config('my.value', 'v@n@', false), current_setting('my.value', true)
