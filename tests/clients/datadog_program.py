"""Asks the console what Datadog's agent asks PgBouncer, with its driver, and holds the answers to
what it takes for granted: the columns, and that each value becomes a number.

The agent's check is in no package registry, so this is the sequence of its commands (of its version
of 2026), not the program itself. It looks at columns by name and passes over those that are not
there, so here each has to be there.
"""

import re
import sys
import time

import psycopg2
from psycopg2 import extras

ASKED = {
    "SHOW STATS": "database | total_xact_count total_query_count total_received total_sent total_query_time "
    "total_xact_time total_wait_time avg_xact_count avg_query_count avg_wait_time avg_recv avg_sent "
    "avg_xact_time avg_query_time total_server_parse_count total_client_parse_count total_bind_count",
    "SHOW POOLS": "database user | cl_active cl_waiting sv_active sv_idle sv_used sv_tested sv_login "
    "maxwait maxwait_us",
    "SHOW DATABASES": "name database | pool_size max_connections current_connections",
    "SHOW CONFIG": "| max_client_conn",
    "SHOW CLIENTS": "database user state | connect_time request_time wait wait_us prepared_statements",
    "SHOW SERVERS": "database user state | connect_time request_time prepared_statements",
}
MOMENTS = ("connect_time", "request_time")

connection = psycopg2.connect(host=sys.argv[1], port=6432, user="postgres", database="pgbouncer")
connection.set_isolation_level(psycopg2.extensions.ISOLATION_LEVEL_AUTOCOMMIT)


def moment(value):
    """Seconds since 1970, of a time that may have a zone behind it."""
    return time.mktime(time.strptime(re.findall(r"^[^ ]+ [^ ]+", value)[0], "%Y-%m-%d %H:%M:%S"))


for _ in range(2):
    for query, columns in ASKED.items():
        labels, figures = (part.split() for part in columns.split("|"))
        with connection.cursor(cursor_factory=extras.DictCursor) as cursor:
            cursor.execute(query)
            rows = list(cursor)
        if query == "SHOW CONFIG":
            rows = [{row["key"]: row["value"]} for row in rows if row["key"] in figures]
        rows = [row for row in rows if "database" not in row or row["database"] != "pgbouncer"]
        assert rows, query
        told = [tuple(str(row[label]) for label in labels) for row in rows]
        assert len(set(told)) == len(told) or "SHOW CLIENTS SHOW SERVERS".count(query), told
        for row in rows:
            for figure in figures:
                value = row[figure]
                assert (moment(value) if figure in MOMENTS else float(value)) >= 0, (figure, value)
        print(query, len(rows), len(figures))

with connection.cursor(cursor_factory=extras.DictCursor) as cursor:
    cursor.execute("SHOW VERSION;")
    version = connection.notices[0] if connection.notices else cursor.fetchone()[0]
    print("version", re.findall(r"\d+\.\d+\.\d+", version)[0])
