<?php
// PDO: a login at each door that is named, and a few statements behind it.
function visit($place) {
    $pdo = new PDO('pgsql:' . str_replace(' ', ';', $place), null, null, [
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
        PDO::ATTR_EMULATE_PREPARES => true,
    ]);
    for ($k = 0; $k < 3; $k++) {
        $name = $pdo->query("SELECT relname FROM pg_class WHERE relname = 'pg_type'")->fetchColumn();
    }
    $statement = $pdo->prepare('SELECT 40 + ?::int');
    $statement->execute([2]);
    return "$name " . $statement->fetchColumn();
}

foreach (array_slice($argv, 1) as $place) {
    try {
        echo visit($place), "\n";
    } catch (PDOException $error) {
        echo 'refused ', str_replace("\n", ' ', $error->getMessage()), "\n";
    }
}
