\set ON_ERROR_STOP 0
\set SHOW_CONTEXT always
\pset null '(null)'
SELECT id, name FROM items WHERE id = @n@ \gdesc
SELECT id AS one, name AS two FROM items WHERE id = @n@ \gset
\echo :one :'two'
SELECT name FROM items WHERE id = :one AND name = :'two';
SELECT 1 AS a, 'x' AS b \; SELECT @n@ AS c;
\set ON_ERROR_ROLLBACK on
BEGIN;
SELECT 1 / (@n@ - @n@);
SELECT name FROM items WHERE id = @n@;
COMMIT;
\set ON_ERROR_ROLLBACK off
\set FETCH_COUNT 3
SELECT id FROM items WHERE id < 1@n@ ORDER BY id;
\set FETCH_COUNT 0
\copy (SELECT id, name FROM items WHERE id <= 1@n@ ORDER BY id) TO STDOUT
CREATE TEMP TABLE copied_@n@ (a int, b text);
\copy copied_@n@ FROM STDIN
1	one
2	two
\.
COPY copied_@n@ TO STDOUT;
SELECT * FROM copied_@n@ WHERE a = 2;
LISTEN channel;
NOTIFY other, 'payload @n@';
SELECT count(*) FROM items WHERE kind = 3;
\x on
SELECT * FROM every WHERE id = @n@;
\x off
;
