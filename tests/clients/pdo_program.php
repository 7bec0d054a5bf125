<?php
// PDO with emulated prepares, as frameworks use it, and the older pg_query functions.
$here = __DIR__;
$dsn = sprintf('pgsql:host=%s;port=%s;dbname=%s', getenv('PGHOST'), getenv('PGPORT'), getenv('PGDATABASE'));
$pdo = new PDO($dsn, getenv('PGUSER'), '', [
    PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
    PDO::ATTR_EMULATE_PREPARES => true,
    PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC,
]);

function show($statement) {
    $columns = [];
    for ($k = 0; $k < $statement->columnCount(); $k++) {
        $meta = $statement->getColumnMeta($k);
        $columns[] = [$meta['name'], $meta['pgsql:oid'] < 16384 ? $meta['pgsql:oid'] : 'own', $meta['len'], $meta['precision']];
    }
    $rows = $statement->columnCount() > 0 ? $statement->fetchAll(PDO::FETCH_NUM) : [];
    foreach ($rows as &$row) {
        foreach ($row as &$value) {
            if (is_resource($value)) {
                $value = bin2hex(stream_get_contents($value));
            }
        }
    }
    echo $statement->rowCount(), ' ', json_encode([$columns, $rows], JSON_UNESCAPED_UNICODE), "\n";
}

function attempt($action) {
    try {
        show($action());
    } catch (PDOException $error) {
        echo 'error ', $error->getCode(), ' ', $error->getMessage(), "\n";
    }
}

$pdo->exec(file_get_contents("$here/setup.sql"));
$statements = explode("\n", trim(file_get_contents("$here/statements.sql")));
$plain = pg_connect(sprintf('host=%s port=%s dbname=%s user=%s', getenv('PGHOST'), getenv('PGPORT'), getenv('PGDATABASE'), getenv('PGUSER')));
for ($n = 1; $n <= 8; $n++) {
    foreach ($statements as $sql) {
        $sql = str_replace('@n@', (string) $n, $sql);
        attempt(fn() => $pdo->query($sql));
    }
    $bound = function ($sql, $values) use ($pdo) {
        attempt(function () use ($pdo, $sql, $values) {
            $statement = $pdo->prepare($sql);
            $statement->execute($values);
            return $statement;
        });
    };
    $bound('SELECT id, name FROM items WHERE id = ? AND name <> ?', [$n, "it's"]);
    $bound('SELECT id, name FROM items WHERE id = :id OR name = :name ORDER BY 1', ['id' => $n, 'name' => 'ünï \\ ☃']);
    $bound('INSERT INTO items VALUES (?, ?, ?, ?)', [5000 + $n, 'bound', null, '1.5']);
    $bound('UPDATE every SET t = ?, b = ?, jb = ? WHERE id = ? RETURNING t, b, jb', [null, 'f', '{"a": "it\'s"}', $n]);
    $bound('SELECT id FROM items WHERE id = ?', ["not a number $n"]);
    $typed = $pdo->prepare('SELECT :i::int AS i, :b AS b, :s AS s, :z::text AS z');
    $typed->bindValue('i', $n, PDO::PARAM_INT);
    $typed->bindValue('b', true, PDO::PARAM_BOOL);
    $typed->bindValue('s', "\u{1f600} '", PDO::PARAM_STR);
    $typed->bindValue('z', null, PDO::PARAM_NULL);
    $typed->execute();
    show($typed);
    $pdo->beginTransaction();
    $bound('DELETE FROM items WHERE id = ?', [5000 + $n]);
    $pdo->rollBack();
    $bound('SELECT count(*) FROM items WHERE id = ?', [5000 + $n]);
    $real = $pdo->prepare('SELECT name FROM items WHERE id = ?', [PDO::ATTR_EMULATE_PREPARES => false]);
    $real->execute([$n]);
    show($real);
    $quoted = pg_escape_literal($plain, "it's \\ $n");
    $result = pg_query($plain, "SELECT id, $quoted AS q FROM items WHERE id = $n");
    echo json_encode([pg_fetch_all($result), pg_field_type($result, 1), pg_num_rows($result)]), "\n";
    $result = pg_query_params($plain, 'SELECT name FROM items WHERE id = $1', [$n]);
    echo json_encode(pg_fetch_all($result)), "\n";
    pg_send_query($plain, "SELECT $n / 0");
    $result = pg_get_result($plain);
    echo pg_result_error_field($result, PGSQL_DIAG_SQLSTATE), ' ', pg_result_error($result), "\n";
}
$changes = explode("\n", trim(file_get_contents("$here/changes.sql")));
for ($n = 1; $n <= 8; $n++) {
    foreach ($changes as $sql) {
        $sql = str_replace('@n@', (string) $n, $sql);
        attempt(fn() => $pdo->query($sql));
    }
}
