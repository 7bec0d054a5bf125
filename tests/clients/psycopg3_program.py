"""psycopg 3: parameters in the text (ClientCursor), on the server, in pipelines, and binary."""
import datetime
import decimal
import os
import sys

import psycopg
from psycopg import ClientCursor
from psycopg.types.json import Jsonb

HERE = os.path.dirname(os.path.abspath(__file__))
BUILT_IN = 16384


def open_file(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def run(cursor, sql, parameters=None, **options):
    try:
        cursor.execute(sql, parameters, **options)
        while True:
            if cursor.description is None:
                print(cursor.statusmessage, cursor.rowcount)
            else:
                columns = [
                    (c.name, c.type_code if c.type_code < BUILT_IN else "own", c.display_size, c.precision)
                    for c in cursor.description
                ]
                print(cursor.statusmessage, columns)
                for row in cursor.fetchall():
                    print("  ", row)
            if not cursor.nextset():
                break
    except psycopg.Error as error:
        print("error", error.sqlstate, str(error).rstrip())
    print("  status", cursor.connection.info.transaction_status.name)


def main():
    connection = psycopg.connect("", autocommit=True)
    connection.add_notice_handler(lambda d: print("  notice", d.sqlstate, d.message_primary, d.context))
    plain = connection.cursor()
    run(plain, open_file("setup.sql"))
    statements = open_file("statements.sql").splitlines()
    client = ClientCursor(connection)
    binary = connection.cursor(binary=True)
    for n in range(1, 9):
        for sql in statements:
            run(plain, sql.replace("@n@", str(n)))
        for value in [
            n, -n, 2**40, decimal.Decimal("1.50"), 2.5, True, None, "it's \\ ü", b"\x00\xff",
            datetime.date(2020, 2, 29), datetime.datetime(2020, 1, 2, 3, 4, 5),
            datetime.timedelta(days=2), [1, 2, n], ["a", None, "b'"], Jsonb({"n": n}),
        ]:
            run(client, "SELECT %s AS v", (value,))
            run(plain, "SELECT %s AS v", (value,))
            run(binary, "SELECT %s AS v", (value,))
        run(client, "SELECT id, name FROM items WHERE id = %s AND name <> %s", (n, "x"))
        run(plain, "SELECT id, name FROM items WHERE id = %s AND name <> %s", (n, "x"), prepare=True)
        run(plain, f"SELECT {n}; SELECT 'two'; SELECT 3 / (1 - 1); SELECT 4")
        try:
            with connection.transaction():
                run(client, "INSERT INTO items VALUES (%s, %s, %s, %s)", (5000 + n, "outer", 1, None))
                try:
                    with connection.transaction():
                        run(client, "INSERT INTO items VALUES (%s, %s, %s, %s)", (5000 + n, "inner", 1, None))
                        run(client, "SELECT %s", (n,))
                except psycopg.Error as error:
                    print("inner", error.sqlstate)
                run(client, "SELECT name FROM items WHERE id = %s", (5000 + n,))
        except psycopg.Error as error:
            print("outer", error.sqlstate)
        with connection.pipeline():
            first = connection.execute("SELECT %s::int + 1", (n,))
            second = connection.execute("SELECT name FROM items WHERE id = %s", (n,))
        print(first.fetchone(), second.fetchone())
        with plain.copy(f"COPY (SELECT id, name FROM items WHERE id < 5 + {n} ORDER BY id) TO STDOUT") as copy:
            print(b"".join(bytes(block) for block in copy))
        with plain.copy("COPY items FROM STDIN") as copy:
            copy.write_row((7000 + n, "copied", 1, 2.5))
        run(client, "SELECT * FROM items WHERE id = %s", (7000 + n,))
    for n in range(1, 9):
        for sql in open_file("changes.sql").splitlines():
            run(plain, sql.replace("@n@", str(n)))
    connection.close()


sys.stdout.reconfigure(encoding="utf-8")
main()
