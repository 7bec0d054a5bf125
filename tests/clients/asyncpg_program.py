"""asyncpg: the extended protocol throughout, and simple queries for scripts."""
import asyncio
import os
import sys

import asyncpg

HERE = os.path.dirname(os.path.abspath(__file__))


async def main():
    with open(os.path.join(HERE, "setup.sql"), encoding="utf-8") as file:
        setup = file.read()
    connection = await asyncpg.connect()
    await connection.execute(setup)
    for n in range(1, 9):
        print(await connection.execute(f"UPDATE items SET kind = {n} WHERE id = 1{n}"))
        print(await connection.fetch("SELECT id, name, price FROM items WHERE id < $1 ORDER BY id", n + 3))
        print(await connection.fetchval("SELECT $1::text || 'x'", f"it's {n}"))
        try:
            await connection.execute(f"SELECT 1 / ({n} - {n})")
        except asyncpg.PostgresError as error:
            print(type(error).__name__, error.sqlstate, error)
        try:
            await connection.execute(f"SELECT id FROM items WHERE id = 'abc{n}'")
        except asyncpg.PostgresError as error:
            print(type(error).__name__, error.sqlstate, error, error.position)
        async with connection.transaction():
            await connection.executemany("INSERT INTO items VALUES ($1, $2)", [(8000 + n, "a"), (8100 + n, "b")])
            async for row in connection.cursor("SELECT id FROM items WHERE id >= 8000 ORDER BY id"):
                print(row["id"])
        statement = await connection.prepare("SELECT name FROM items WHERE id = $1")
        print(await statement.fetchval(n), statement.get_attributes())
        await connection.copy_records_to_table("items", records=[(9000 + n, "copied", 1, None)])
        print(await connection.fetchrow(f"SELECT * FROM items WHERE id = {9000 + n}"))
    await connection.close()


sys.stdout.reconfigure(encoding="utf-8")
asyncio.run(main())
