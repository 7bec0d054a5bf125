"""psycopg 3: a login at each door that is named, and a few statements behind it."""
import sys

import psycopg


def visit(place):
    with psycopg.connect(place) as connection:
        for _ in range(3):
            name = connection.execute("SELECT relname FROM pg_class WHERE relname = 'pg_type'").fetchone()[0]
        total = connection.execute("SELECT 40 + %s::int", (2,)).fetchone()[0]
    return f"{name} {total}"


for place in sys.argv[1:]:
    try:
        print(visit(place))
    except psycopg.OperationalError as error:
        print("refused", str(error).strip().replace("\n", " "))
