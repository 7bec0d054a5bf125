CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN short AS varchar(5);
CREATE TYPE pair AS (a int, b text);
CREATE TABLE every (
    id int PRIMARY KEY, b bool, i2 int2, i8 int8, n numeric(12, 3), f4 float4, f8 float8,
    t text, vc varchar(10), c char(5), by bytea, d date, ti time, ts timestamp, tz timestamptz,
    iv interval, ivd interval day, u uuid, j json, jb jsonb, ia int[], ta text[], m mood,
    pos positive, sh short, p pair, r int4range, ip inet, mac macaddr, b3 bit(3), tv tsvector,
    mo money
);
CREATE TABLE child (
    id int PRIMARY KEY,
    every_id int NOT NULL REFERENCES every DEFERRABLE INITIALLY DEFERRED,
    note text
);
CREATE TABLE items (id int PRIMARY KEY, name text NOT NULL, kind int, price numeric);
INSERT INTO items SELECT g, 'item ' || g, g % 7, g * 0.1 FROM generate_series(1, 1000) AS g;
CREATE INDEX ON items (kind);
ANALYZE items;
CREATE FUNCTION shout(word text) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN RAISE NOTICE 'shouting %', word; RETURN upper(word); END $$;
CREATE FUNCTION divide(a int, b int) RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN RETURN a / b; END $$;
