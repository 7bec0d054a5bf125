// What Prometheus' exporter for PgBouncer asks, with its driver, and what it takes for granted of the
// answers. The exporter itself is not to be had from everywhere, so this is the sequence of its
// commands (of August 2026), not the program. PGHOST and the like say where the console is.
package main

import (
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"strings"

	"clients/script"

	"github.com/lib/pq"
)

// The columns that each table must have: labels, and behind the bar figures.
var tables = [][2]string{
	{"DATABASES", "name host port database force_user pool_mode | pool_size reserve_pool_size max_connections current_connections paused disabled"},
	{"STATS_TOTALS", "database | query_count query_time bytes_received bytes_sent wait_time xact_count xact_time client_parse_count server_parse_count bind_count server_assignment_count"},
	{"POOLS", "database user | cl_active cl_active_cancel_req cl_waiting cl_waiting_cancel_req sv_active sv_active_cancel sv_being_canceled sv_idle sv_used sv_tested sv_login maxwait"},
}

var lists = strings.Fields("databases users pools free_clients used_clients login_clients free_servers used_servers dns_names dns_zones dns_queries")

func main() {
	connector, err := pq.NewConnector("sslmode=disable")
	script.Must(err)
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	// A scrape, twice: the second on the connection of the first.
	for i := 0; i < 2; i++ {
		rows, err := db.Query("SHOW STATS;")
		script.Must(err)
		script.Must(rows.Close())
		for _, table := range tables {
			fmt.Println(table[0], figures(db, table[0], table[1]))
		}
		items := pairs(db, "LISTS", 2)
		for _, list := range lists {
			number(items[list])
		}
		config := pairs(db, "CONFIG", 4)
		number(config["max_client_conn"])
		number(config["max_user_connections"])
		clients := figures(db, "CLIENTS", "database user state application_name |")
		var version string
		script.Must(db.QueryRow("SHOW VERSION;").Scan(&version))
		fmt.Println("CLIENTS", clients > 0, version)
	}
	script.Must(db.Close())
}

// figures reads a table, and returns the number of its rows. Labels are text, numbers or nothing,
// and figures become numbers, of whatever kind they come.
func figures(db *sql.DB, table, columns string) int {
	rows, err := db.Query("SHOW " + table + ";")
	script.Must(err)
	defer rows.Close()
	names, err := rows.Columns()
	script.Must(err)
	labels, numbers, _ := strings.Cut(columns, "|")
	count := 0
	for ; rows.Next(); count++ {
		values, places := make([]interface{}, len(names)), make([]interface{}, len(names))
		for i := range values {
			places[i] = &values[i]
		}
		script.Must(rows.Scan(places...))
		row := map[string]interface{}{}
		for i, name := range names {
			row[name] = values[i]
		}
		for _, name := range strings.Fields(labels) {
			value, there := row[name]
			_, raw := value.([]byte)
			must(there && !raw, table, name, value)
		}
		for _, name := range strings.Fields(numbers) {
			switch value := row[name].(type) {
			case int64, float64:
			case []byte:
				number(string(value))
			case string:
				number(value)
			default:
				must(false, table, name, value)
			}
		}
	}
	script.Must(rows.Err())
	must(count > 0, table, "has rows", count)
	return count
}

// pairs reads a table of so many columns, of which the first two are a key and its value.
func pairs(db *sql.DB, table string, width int) map[string]string {
	rows, err := db.Query("SHOW " + table + ";")
	script.Must(err)
	defer rows.Close()
	names, err := rows.Columns()
	script.Must(err)
	must(len(names) == width, table, "columns", names)
	found := map[string]string{}
	for rows.Next() {
		var key string
		raw := make([]sql.RawBytes, width-1)
		places := []interface{}{&key}
		for i := range raw {
			places = append(places, &raw[i])
		}
		script.Must(rows.Scan(places...))
		found[key] = string(raw[0])
	}
	script.Must(rows.Err())
	return found
}

func number(text string) {
	_, err := strconv.ParseFloat(text, 64)
	script.Must(err)
}

func must(holds bool, table, what string, value interface{}) {
	if !holds {
		fmt.Println(table, what, value)
		os.Exit(1)
	}
}
