-- What sessions find when they come together: tables for all, with a second schema that has the same
-- names and other types, tables that show who looks at them, and a table for each of them alone.
SET client_min_messages = error;
DROP SCHEMA IF EXISTS hall, annex, cellar CASCADE;
CREATE SCHEMA hall;
CREATE SCHEMA annex;
CREATE TABLE hall.book (id int PRIMARY KEY, title varchar(20), price numeric(8, 2), printed date,
    added timestamptz, lent interval, cover bytea, score float8, kind text, shelf int);
INSERT INTO hall.book SELECT i, 'book ' || i % 70, i * 1.25, date '2024-02-01' + i % 40,
    timestamptz '2024-02-01 00:00+00' + i * interval '7 hours', i * interval '95 minutes',
    decode(md5(i::text), 'hex'), i / 3.0::float8, (ARRAY['novel', 'atlas', 'score'])[1 + i % 3], i % 7
    FROM generate_series(1, 200) i;
CREATE INDEX book_shelf ON hall.book (shelf);
CREATE TABLE hall.shelf (id int PRIMARY KEY, room text, wide numeric(6, 1));
INSERT INTO hall.shelf SELECT i, 'room ' || i % 3, i * 10.5 FROM generate_series(0, 6) i;
CREATE TABLE annex.book (id bigint PRIMARY KEY, title text, price float8, printed timestamp,
    added timestamp, lent text, cover text, score real, kind char(8), shelf numeric);
INSERT INTO annex.book SELECT id, 'annex ' || id, price, printed, added, lent::text, 'none', score,
    kind, shelf FROM hall.book;
CREATE TABLE hall.vault (id int PRIMARY KEY, v text);
INSERT INTO hall.vault SELECT i, 'v' || i FROM generate_series(1, 40) i;
CREATE TABLE hall.secret (id int PRIMARY KEY, owner name, v text);
INSERT INTO hall.secret SELECT i, (ARRAY['ann', 'ben', 'staff', 'postgres'])[1 + i % 4], 's' || i
    FROM generate_series(1, 40) i;
CREATE POLICY owners ON hall.secret USING (owner = current_user);
ALTER TABLE hall.secret ENABLE ROW LEVEL SECURITY;
CREATE TABLE hall.lodger (id int PRIMARY KEY, tenant text);
INSERT INTO hall.lodger SELECT i, chr(97 + i % 3) FROM generate_series(1, 40) i;
CREATE POLICY tenants ON hall.lodger USING (tenant = current_setting('app.tenant', true));
ALTER TABLE hall.lodger ENABLE ROW LEVEL SECURITY;
CREATE VIEW hall.cheap AS SELECT id, title, price FROM hall.book WHERE price < 100;
CREATE VIEW hall.mine AS SELECT id, v, current_user AS reader FROM hall.secret;
CREATE FUNCTION hall.label(int) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ''hall '' || $1';
CREATE FUNCTION annex.label(int) RETURNS varchar LANGUAGE sql IMMUTABLE AS 'SELECT ''annex '' || $1';
CREATE FUNCTION hall.zone(int) RETURNS text LANGUAGE sql STABLE AS
    'SELECT current_setting(''TimeZone'') || $1';
CREATE FUNCTION hall.shelves(int) RETURNS bigint LANGUAGE sql STABLE AS
    'SELECT count(*) FROM shelf WHERE id < $1';
CREATE FUNCTION hall.shout(int) RETURNS int LANGUAGE plpgsql STABLE AS
    $$BEGIN RAISE NOTICE 'shout %', $1; RETURN $1; END$$;
CREATE FUNCTION hall.shift(text, text) RETURNS text LANGUAGE sql AS
    'SELECT set_config($1, $2, false)';
CREATE FUNCTION hall.shifted() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN PERFORM set_config('DateStyle', 'Postgres, DMY', false); RETURN NEW; END$$;
CREATE FUNCTION hall.hides() RETURNS int LANGUAGE plpgsql AS $$BEGIN
    CREATE TEMP TABLE IF NOT EXISTS shelf AS
        SELECT id, 'hidden ' || room AS room, wide FROM hall.shelf;
    RETURN 1; END$$;
DO $$BEGIN FOR i IN 0..11 LOOP
    EXECUTE format('CREATE TABLE hall.own_%s (id int PRIMARY KEY, n int DEFAULT 7, v text)', i);
    EXECUTE format('INSERT INTO hall.own_%s SELECT i, i, ''v'' || i FROM generate_series(1, 9) i', i);
    EXECUTE format('CREATE SEQUENCE hall.count_%s', i);
END LOOP; END$$;
GRANT ALL ON SCHEMA hall, annex TO ann, ben, staff;
GRANT ALL ON ALL TABLES IN SCHEMA hall, annex TO ann, ben, staff;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO ann, ben, staff;
GRANT ALL ON ALL SEQUENCES IN SCHEMA hall TO ann, ben, staff;
ALTER ROLE ann RESET ALL;
ALTER ROLE ben RESET ALL;
GRANT staff TO ann, ben;
RESET client_min_messages
