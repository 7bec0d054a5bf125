"""psycopg2: a login at each door that is named, and a few statements behind it."""
import sys

import psycopg2


def visit(place):
    connection = psycopg2.connect(place)
    cursor = connection.cursor()
    for _ in range(3):
        cursor.execute("SELECT relname FROM pg_class WHERE relname = %s", ("pg_type",))
        name = cursor.fetchone()[0]
    cursor.execute("SELECT 40 + %s", (2,))
    total = cursor.fetchone()[0]
    connection.rollback()
    connection.close()
    return f"{name} {total}"


for place in sys.argv[1:]:
    try:
        print(visit(place))
    except psycopg2.OperationalError as error:
        print("refused", str(error).strip().replace("\n", " "))
