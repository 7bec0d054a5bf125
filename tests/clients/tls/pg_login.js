// node-postgres: a login at each door that is named, and a few statements behind it.
'use strict';
const dns = require('dns');
const fs = require('fs');
const { Client } = require('pg');

// The proxy listens on one address only.
dns.setDefaultResultOrder('ipv4first');

async function visit(place) {
  const named = Object.fromEntries(place.split(' ').map((part) => part.split('=')));
  const client = new Client({
    host: named.host,
    port: Number(named.port),
    user: named.user,
    password: named.password,
    database: named.dbname,
    ssl: { ca: fs.readFileSync(named.sslrootcert, 'utf8') },
    enableChannelBinding: true,
  });
  client.on('error', () => {});
  await client.connect();
  let name;
  for (let k = 0; k < 3; k++) {
    name = (await client.query("SELECT relname FROM pg_class WHERE relname = 'pg_type'")).rows[0].relname;
  }
  const total = (await client.query('SELECT 40 + $1::int AS total', [2])).rows[0].total;
  await client.end();
  return `${name} ${total}`;
}

async function main() {
  for (const place of process.argv.slice(2)) {
    try {
      console.log(await visit(place));
    } catch (error) {
      console.log('refused', error.message);
    }
  }
}

main();
