"""asyncpg: a login at each door that is named, and a few statements behind it."""
import asyncio
import ssl
import sys

import asyncpg


async def visit(place):
    named = dict(part.split("=", 1) for part in place.split())
    context = ssl.create_default_context(cafile=named["sslrootcert"])
    connection = await asyncpg.connect(host=named["host"], port=int(named["port"]), user=named["user"],
                                       password=named["password"], database=named["dbname"], ssl=context)
    for _ in range(3):
        name = await connection.fetchval("SELECT relname FROM pg_class WHERE relname = 'pg_type'")
    total = await connection.fetchval("SELECT 40 + $1::int", 2)
    await connection.close()
    return f"{name} {total}"


async def main():
    for place in sys.argv[1:]:
        try:
            print(await visit(place))
        except (OSError, asyncpg.PostgresError) as error:
            print("refused", str(error).replace("\n", " "))


asyncio.run(main())
