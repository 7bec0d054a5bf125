-- What a random session begins with: schemas whose tables have the same names and other types.
SET client_min_messages = error;
DROP SCHEMA IF EXISTS one, two, three, four CASCADE;
CREATE SCHEMA one;
CREATE SCHEMA two;
CREATE SCHEMA three;
CREATE TYPE one.feel AS ENUM ('low', 'mid', 'high');
CREATE TABLE one.thing (id int PRIMARY KEY, d date, c char(4), v varchar(6), n numeric(6, 2), r real,
    j jsonb, g regclass, ts timestamp, b bool DEFAULT true, tenant text DEFAULT 'a', f one.feel);
CREATE TABLE two.thing (id bigint PRIMARY KEY, d timestamp, c text, v char(6), n numeric(8, 4),
    r float8, j text, g text, ts timestamptz, b bool DEFAULT false, tenant text DEFAULT 'b', f text);
CREATE TABLE three.thing (id numeric, d text, c varchar(4), v text, n int, r numeric, j json,
    g regclass, ts date, b bool, tenant name, f text);
CREATE TABLE one.part (id int PRIMARY KEY, thing int, name char(6), q int DEFAULT 7);
CREATE TABLE two.part (id int PRIMARY KEY, thing text, name text, q numeric(6, 1));
CREATE TABLE three.part (id bigint, thing bigint, name varchar(9), q text);
CREATE DOMAIN one.small AS int CHECK (VALUE < 50);
INSERT INTO one.thing SELECT i, date '2024-02-01' + i % 9, 'c' || i % 4, 'v' || i % 5, i * 0.25,
    i * 0.1, jsonb_build_object('a', i % 3), 'pg_class', timestamp '2024-02-01' + i * interval '7 h',
    i % 3 > 0, chr(97 + i % 2), (ARRAY['low', 'mid', 'high']::one.feel[])[1 + i % 3]
    FROM generate_series(1, 24) i;
INSERT INTO two.thing SELECT id, d + interval '23:30', c || ' ', v, n / 3, r, j::text, 'thing', ts, b,
    tenant, f FROM one.thing;
INSERT INTO three.thing SELECT id, d::text, c, v, n, r, j::json, g, ts::date, b, tenant, f
    FROM one.thing;
INSERT INTO one.part SELECT i, 1 + i % 12, 'p' || i % 4, i % 5 FROM generate_series(1, 24) i;
INSERT INTO two.part SELECT id, thing::text, name || ' ', q + 0.5 FROM one.part;
INSERT INTO three.part TABLE one.part;
CREATE INDEX ON one.part (thing);
CREATE FUNCTION one.pick(int) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ''int '' || $1';
CREATE FUNCTION two.pick(numeric) RETURNS text LANGUAGE sql STABLE AS 'SELECT ''numeric '' || $1';
CREATE FUNCTION one.parts(int) RETURNS bigint LANGUAGE sql STABLE AS
    'SELECT count(*) FROM part WHERE thing::text = $1::text';
CREATE FUNCTION one.shouts() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN RAISE NOTICE '% %', TG_OP, NEW; RETURN NEW; END$$;
CREATE VIEW one.seen AS SELECT id, b, tenant FROM one.thing WHERE b;
CREATE POLICY tenants ON one.thing USING (tenant = current_setting('app.tenant', true));
ALTER TABLE one.thing ENABLE ROW LEVEL SECURITY;
GRANT ALL ON SCHEMA one, two, three TO clerk;
GRANT ALL ON ALL TABLES IN SCHEMA one, two, three TO clerk
