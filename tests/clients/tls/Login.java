// The JDBC driver: a login at each door that is named, and a few statements behind it.
import java.sql.*;
import java.util.*;

public class Login {
    public static void main(String[] arguments) {
        for (String place : arguments) {
            try {
                System.out.println(visit(place));
            } catch (SQLException error) {
                System.out.println("refused " + error.getMessage().replace('\n', ' '));
            }
        }
    }

    static String visit(String place) throws SQLException {
        Map<String, String> named = new HashMap<>();
        for (String part : place.split(" ")) {
            String[] both = part.split("=", 2);
            named.put(both[0], both[1]);
        }
        Properties properties = new Properties();
        for (String name : List.of("user", "password", "sslmode", "sslrootcert")) {
            properties.setProperty(name, named.get(name));
        }
        // Drivers that do not know it leave it alone.
        properties.setProperty("channelBinding", "require");
        properties.setProperty("preferQueryMode", "simple");
        String url = String.format("jdbc:postgresql://%s:%s/%s", named.get("host"), named.get("port"), named.get("dbname"));
        try (Connection connection = DriverManager.getConnection(url, properties)) {
            String name = null;
            for (int k = 0; k < 3; k++) {
                name = first(connection, "SELECT relname FROM pg_class WHERE relname = 'pg_type'");
            }
            return name + " " + first(connection, "SELECT 40 + 2");
        }
    }

    static String first(Connection connection, String text) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(text)) {
            rows.next();
            return rows.getString(1);
        }
    }
}
