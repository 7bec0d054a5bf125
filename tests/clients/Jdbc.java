// The JDBC driver in each of its query modes.
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.*;
import java.util.*;

public class Jdbc {
    static Connection connection;

    public static void main(String[] arguments) throws Exception {
        System.setOut(new java.io.PrintStream(System.out, true, StandardCharsets.UTF_8));
        Path here = Path.of(arguments[0]);
        String url = String.format("jdbc:postgresql://%s:%s/%s?user=%s&options=-c%%20TimeZone=UTC",
            System.getenv("PGHOST"), System.getenv("PGPORT"), System.getenv("PGDATABASE"), System.getenv("PGUSER"));
        List<String> statements = Files.readAllLines(here.resolve("statements.sql"));
        List<String> changes = Files.readAllLines(here.resolve("changes.sql"));
        for (String mode : List.of("simple", "extended", "extendedForPrepared", "extendedCacheEverything")) {
            connection = DriverManager.getConnection(url + "&preferQueryMode=" + mode);
            try (Statement statement = connection.createStatement()) {
                statement.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
                statement.execute(Files.readString(here.resolve("setup.sql")));
            }
            System.out.println("mode " + mode);
            for (int n = 1; n <= 8; n++) {
                for (String sql : statements) {
                    text(sql.replace("@n@", Integer.toString(n)));
                }
                values(n);
                batches(n);
                transactions(n);
            }
            for (int n = 1; n <= 8; n++) {
                for (String sql : changes) {
                    // The driver closes the connection when DateStyle is no longer ISO.
                    if (!sql.contains("datestyle")) {
                        text(sql.replace("@n@", Integer.toString(n)));
                    }
                }
            }
            connection.close();
        }
    }

    static void text(String sql) {
        try (Statement statement = connection.createStatement()) {
            show(statement, statement.execute(sql));
        } catch (SQLException error) {
            report(error);
        }
    }

    static void show(Statement statement, boolean hasRows) throws SQLException {
        while (hasRows || statement.getUpdateCount() != -1) {
            if (!hasRows) {
                System.out.println("count " + statement.getUpdateCount());
            } else {
                rows(statement.getResultSet());
            }
            hasRows = statement.getMoreResults();
        }
        for (SQLWarning warning = statement.getWarnings(); warning != null; warning = warning.getNextWarning()) {
            System.out.println("warning " + warning.getSQLState() + " " + warning.getMessage());
        }
    }

    static void rows(ResultSet rows) throws SQLException {
        ResultSetMetaData meta = rows.getMetaData();
        StringBuilder out = new StringBuilder();
        for (int k = 1; k <= meta.getColumnCount(); k++) {
            out.append(meta.getColumnLabel(k)).append(' ').append(meta.getColumnTypeName(k)).append(' ')
                .append(meta.getPrecision(k)).append(' ').append(meta.getTableName(k)).append("; ");
        }
        System.out.println(out);
        while (rows.next()) {
            out.setLength(0);
            for (int k = 1; k <= meta.getColumnCount(); k++) {
                out.append(rows.getString(k)).append(" | ");
            }
            System.out.println("  " + out);
        }
    }

    static void report(SQLException error) {
        System.out.println("error " + error.getSQLState() + " " + error.getMessage());
    }

    static void bound(String sql, Object... values) {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int k = 0; k < values.length; k++) {
                statement.setObject(k + 1, values[k]);
            }
            show(statement, statement.execute());
        } catch (SQLException error) {
            report(error);
        }
    }

    static void values(int n) throws SQLException {
        bound("SELECT id, name FROM items WHERE id = ? AND name <> ?", n, "it's \\");
        bound("SELECT id FROM items WHERE price > ? AND id < ? ORDER BY id", new java.math.BigDecimal("1.5"), 20 + n);
        bound("SELECT ?::text, ?::int8, ?::bool, ?::float8, ?::date", "ü☃", 5000000000L + n, true, 1.5, java.sql.Date.valueOf("2020-02-29"));
        bound("UPDATE every SET t = ?, u = ?, ts = ? WHERE id = ? RETURNING t, u, ts", null, new UUID(0, n), Timestamp.valueOf("2020-01-02 03:04:05"), n);
        bound("UPDATE every SET by = ?, ta = ? WHERE id = ? RETURNING by, ta", new byte[] {0, -1, 39}, connection.createArrayOf("text", new String[] {"a", "b'", null}), n);
    }

    static void batches(int n) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("INSERT INTO items VALUES (?, ?)")) {
            for (int k = 0; k < 3; k++) {
                statement.setInt(1, 10000 + 10 * n + k);
                statement.setString(2, "batch " + k);
                statement.addBatch();
            }
            System.out.println(Arrays.toString(statement.executeBatch()));
        }
        try (Statement statement = connection.createStatement()) {
            statement.addBatch("UPDATE items SET kind = 1 WHERE id = " + (10000 + 10 * n));
            statement.addBatch("DELETE FROM items WHERE id = " + (10001 + 10 * n));
            System.out.println(Arrays.toString(statement.executeBatch()));
        }
    }

    static void transactions(int n) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(4);
            rows(statement.executeQuery("SELECT id FROM items WHERE id < 1" + n + " ORDER BY id"));
            Savepoint savepoint = connection.setSavepoint("point");
            text("SELECT 1 / (" + n + " - " + n + ")");
            connection.rollback(savepoint);
            text("SELECT name FROM items WHERE id = " + n);
            connection.rollback();
        }
        connection.setAutoCommit(true);
    }
}
