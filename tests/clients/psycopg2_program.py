"""psycopg2: values are put into the text by the client, which sends simple queries."""
import datetime
import decimal
import io
import os
import select
import sys
import threading
import uuid

import psycopg2
import psycopg2.extras
from psycopg2.extras import Json, NumericRange, execute_values

HERE = os.path.dirname(os.path.abspath(__file__))
BUILT_IN = 16384


def open_file(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def describe(cursor):
    if cursor.description is None:
        return None
    return [
        (c.name, c.type_code if c.type_code < BUILT_IN else "own", c.internal_size, c.precision, c.scale)
        for c in cursor.description
    ]


def run(connection, sql, parameters=None):
    with connection.cursor() as cursor:
        try:
            cursor.execute(sql, parameters)
            print(cursor.statusmessage, describe(cursor), cursor.rowcount)
            if cursor.description is not None:
                for row in cursor:
                    print("  ", [bytes(v) if isinstance(v, memoryview) else v for v in row])
        except psycopg2.Error as error:
            diag = error.diag
            print("error", error.pgcode, str(error).rstrip())
            print(
                "  ", diag.severity, diag.message_detail, diag.message_hint, diag.statement_position,
                diag.context, diag.schema_name, diag.table_name, diag.column_name,
                diag.constraint_name, diag.datatype_name, diag.internal_query,
            )
    print("  notices", connection.notices, connection.get_transaction_status())
    connection.notices.clear()


def adapted(connection, n):
    values = [
        n, -n, 2**40 + n, decimal.Decimal("12.50"), 1.5, float("nan"), float("inf"), True, None,
        "it's \\ a 'text' %s", "ünï ☃", "", b"\x00\xff'\\", datetime.date(2020, 2, 29),
        datetime.time(1, 2, 3, 4), datetime.datetime(2020, 1, 2, 3, 4, 5, 6),
        datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc),
        datetime.timedelta(days=1, seconds=2), [1, n, None], ["a", "b'c", None], [], [[1, 2], [3, 4]],
        Json({"n": n, "q": "it's"}), uuid.UUID(int=n), NumericRange(n, n + 5), (1, n),
    ]
    for value in values:
        run(connection, "SELECT %s AS v", (value,))
    run(connection, "SELECT id, name FROM items WHERE id IN %s ORDER BY id", ((n, n + 1, n + 2),))
    run(connection, "SELECT id FROM items WHERE id = ANY(%s) AND name <> %s ORDER BY id", ([n, n + 1], "x"))
    run(connection, "SELECT d, by FROM every WHERE d = %s AND by = %s AND id = %s",
        (datetime.date(2020, 2, 29), b"\xde\xad\xbe\xef", n))
    run(connection, "UPDATE every SET j = %s, ta = %s, t = %s, iv = %s WHERE id = %s RETURNING j, ta, t, iv",
        (Json([n]), ["a'b", None], None, datetime.timedelta(hours=n), n))
    run(connection, "SELECT %(a)s::int + %(a)s, %(b)s || 'x'", {"a": n, "b": "ü"})


def transactions(connection, n):
    connection.autocommit = False
    run(connection, "INSERT INTO items VALUES (%s, %s, 1, 1.5)", (5000 + n, "tx"))
    connection.rollback()
    run(connection, "SELECT count(*) FROM items WHERE id = %s", (5000 + n,))
    run(connection, "INSERT INTO items VALUES (%s, %s, 1, 1.5)", (n, "duplicate"))
    run(connection, "SELECT %s", (n,))
    connection.rollback()
    with connection, connection.cursor("named") as cursor:
        cursor.itersize = 4
        cursor.execute("SELECT id FROM items WHERE id < %s ORDER BY id", (10 + n,))
        print([row[0] for row in cursor])
    with connection.cursor() as cursor:
        execute_values(cursor, "INSERT INTO items VALUES %s", [(6000 + 10 * n + k, f"v{k}", k, k / 2) for k in range(3)])
        cursor.executemany("UPDATE items SET kind = %s WHERE id = %s", [(9, 6000 + 10 * n), (8, 6001 + 10 * n)])
        print(cursor.statusmessage)
    connection.commit()
    connection.autocommit = True
    run(connection, "SELECT * FROM items WHERE id BETWEEN %s AND %s ORDER BY id", (6000 + 10 * n, 6009 + 10 * n))


def copies(connection, n):
    with connection.cursor() as cursor:
        data = io.StringIO(f"{7000 + n}\tcopied\t1\t2.5\n")
        cursor.copy_expert("COPY items FROM STDIN", data)
        out = io.StringIO()
        cursor.copy_expert(f"COPY (SELECT * FROM items WHERE id = {7000 + n}) TO STDOUT WITH CSV HEADER", out)
        print(cursor.statusmessage, out.getvalue())
        try:
            cursor.copy_expert("COPY items FROM STDIN", io.StringIO("x\ty\n"))
        except psycopg2.Error as error:
            print(error.pgcode, error)


def notifications(connection, n):
    run(connection, f'LISTEN "channel {n}"')
    run(connection, f"NOTIFY \"channel {n}\", 'it''s {n}'")
    run(connection, "SELECT pg_notify(%s, %s)", (f"channel {n}", "second"))
    for _ in range(50):
        connection.poll()
        if len(connection.notifies) == 2:
            break
        select.select([connection], [], [], 0.1)
    own = connection.get_backend_pid()
    print([(notify.channel, notify.payload, notify.pid == own) for notify in connection.notifies])
    connection.notifies.clear()
    run(connection, "UNLISTEN *")


def cancel(connection, n):
    timer = threading.Timer(0.3, connection.cancel)
    timer.start()
    run(connection, "SELECT pg_sleep(%s), %s", (20, n))
    timer.join()
    run(connection, "SELECT %s + 1", (n,))


def main():
    connection = psycopg2.connect("")
    connection.autocommit = True
    run(connection, open_file("setup.sql"))
    statements = open_file("statements.sql").splitlines()
    for n in range(1, 9):
        for sql in statements:
            run(connection, sql.replace("@n@", str(n)))
        adapted(connection, n)
        transactions(connection, n)
        copies(connection, n)
        notifications(connection, n)
        if n > 5:
            cancel(connection, n)
        if n == 4:
            run(connection, "DISCARD ALL")
    for n in range(1, 9):
        for sql in open_file("changes.sql").splitlines():
            run(connection, sql.replace("@n@", str(n)))
    connection.close()


sys.stdout.reconfigure(encoding="utf-8")
main()
