// node-postgres: text queries go by the simple protocol, queries with values by the extended one.
'use strict';
const fs = require('fs');
const path = require('path');
const { Client } = require('pg');

const read = (name) => fs.readFileSync(path.join(__dirname, name), 'utf8');
const client = new Client();
client.on('notice', (notice) => console.log('  notice', notice.code, notice.message, notice.where));
client.on('notification', (message) => console.log('  notification', message.channel, message.payload));

function show(result) {
  const own = (id) => (id < 16384 ? id : 'own');
  const one = (r) => {
    const fields = r.fields.map((f) => [f.name, own(f.dataTypeID), f.dataTypeSize, f.dataTypeModifier, f.columnID]);
    console.log(r.command, r.rowCount, JSON.stringify([fields, r.rows]));
  };
  (Array.isArray(result) ? result : [result]).forEach(one);
}

async function run(query, values) {
  try {
    show(await client.query(query, values));
  } catch (error) {
    const { code, position, detail, hint, where, schema, table, column, constraint } = error;
    console.log('error', error.message, JSON.stringify({ code, position, detail, hint, where, schema, table, column, constraint }));
  }
}

async function main() {
  await client.connect();
  await client.query(read('setup.sql'));
  const statements = read('statements.sql').trim().split('\n');
  for (let n = 1; n <= 8; n++) {
    for (const sql of statements) {
      await run(sql.replace(/@n@/g, String(n)));
    }
    await run('SELECT id, name FROM items WHERE id = $1 AND name <> $2', [n, "it's"]);
    await run({ name: 'own', text: 'SELECT name FROM items WHERE id = $1', values: [n] });
    const word = client.escapeLiteral(`it's \\ ü ${n}`);
    await run(`SELECT ${word} AS w FROM items WHERE id = ${n}`);
    await run({ text: `SELECT id, name FROM items WHERE id = ${n}`, rowMode: 'array' });
    await Promise.all([1, 2, 3].map((k) => run(`SELECT ${k} AS k, name FROM items WHERE id = ${n}`)));
    await run(`SELECT ${n} AS a; SELECT 'b' AS b`);
    await run('LISTEN word');
    await run(`NOTIFY word, 'payload ${n}'`);
    await run('UNLISTEN word');
  }
  for (let n = 1; n <= 8; n++) {
    for (const sql of read('changes.sql').trim().split('\n')) {
      await run(sql.replace(/@n@/g, String(n)));
    }
  }
  await client.end();
}

main();
