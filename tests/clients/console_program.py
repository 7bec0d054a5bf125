"""Looks at the console with psycopg2 and with psycopg 3, which prepares and asks for binary."""

import os
import sys

import psycopg2
import psycopg

TABLES = ["stats", "pools", "clients", "servers", "databases", "config", "lists", "users", "totals"]
where = {"host": sys.argv[1], "port": 6432, "user": "postgres", "dbname": os.environ["PGDATABASE"]}

old = psycopg2.connect(**where)
expected = {}
# It begins a transaction by itself.
with old, old.cursor() as cursor:
    for table in TABLES:
        cursor.execute("SHOW " + table)
        expected[table] = [column.name for column in cursor.description]
        print("psycopg2", table, len(expected[table]))
        assert all(len(row) == len(expected[table]) for row in cursor.fetchall())
old.autocommit = True
with old.cursor() as cursor:
    cursor.execute("RELOAD")
    assert cursor.statusmessage == "RELOAD", cursor.statusmessage
    try:
        cursor.execute("SUSPEND")
        raise SystemExit("SUSPEND was accepted")
    except psycopg2.Error as error:
        assert error.pgcode == "0A000", error
old.close()

with psycopg.connect(**where) as new:
    shown = {}
    for binary in (False, True):
        for table in TABLES:
            cursor = new.cursor(binary=binary)
            rows = cursor.execute("SHOW " + table, prepare=True).fetchall()
            assert [column.name for column in cursor.description] == expected[table]
            if table in ("config", "lists"):
                assert shown.setdefault(table, rows) == rows, (shown[table], rows)
            print("psycopg", binary, table, len(rows) > 0)
    with new.pipeline():
        state = new.execute("SHOW STATE")
        version = new.execute("SHOW VERSION")
    assert version.fetchone()[0].startswith("pgautoprep "), "version"
    assert len(state.fetchall()) == 3
