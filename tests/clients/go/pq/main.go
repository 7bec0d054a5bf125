// lib/pq: a text without values is a simple query. Values go by the extended protocol, in two
// round trips or, with binary_parameters, in one.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"clients/script"

	"github.com/lib/pq"
)

var ctx = context.Background()

func main() {
	files, source := script.Script(os.Args[1]), "sslmode=disable binary_parameters="+os.Args[2]
	plain, err := pq.NewConnector(source)
	script.Must(err)
	db := sql.OpenDB(pq.ConnectorWithNoticeHandler(plain, func(notice *pq.Error) {
		fmt.Println("  notice", fields(notice))
	}))
	connection := connect(db)
	_, err = connection.ExecContext(ctx, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
	script.Must(err)
	_, err = connection.ExecContext(ctx, files.Read("setup.sql"))
	script.Must(err)
	for n := 1; n <= 8; n++ {
		for _, text := range files.Lines("statements.sql", n) {
			either(connection, n, text)
		}
		values(connection, n)
		transactions(connection, n)
		copies(connection, n)
		notifications(connection, source, n)
		if n > 6 {
			cancel(db, n)
		}
	}
	for n := 1; n <= 8; n++ {
		for _, text := range files.Lines("changes.sql", n) {
			either(connection, n, text)
		}
	}
	script.Must(connection.Close())
	script.Must(db.Close())
}

func connect(db *sql.DB) *sql.Conn {
	connection, err := db.Conn(ctx)
	script.Must(err)
	return connection
}

// either runs a text for its rows or, every third time, for the number of them.
func either(connection *sql.Conn, n int, text string) {
	if n%3 != 0 {
		run(connection, text)
		return
	}
	result, err := connection.ExecContext(ctx, text)
	if err != nil {
		report(err)
		return
	}
	count, err := result.RowsAffected()
	fmt.Println("affected", count, err)
}

// queryer is a connection, a transaction or a prepared statement with its text bound.
type queryer interface {
	QueryContext(ctx context.Context, text string, values ...any) (*sql.Rows, error)
}

func run(connection queryer, text string, values ...any) {
	rows, err := connection.QueryContext(ctx, text, values...)
	if err != nil {
		report(err)
		return
	}
	show(rows)
}

// show prints every row of every result.
func show(rows *sql.Rows) {
	for more := true; more; more = rows.NextResultSet() {
		types, err := rows.ColumnTypes()
		script.Must(err)
		for _, column := range types {
			length, hasLength := column.Length()
			precision, scale, hasScale := column.DecimalSize()
			fmt.Print(column.Name(), " ", column.DatabaseTypeName(), " ", length, hasLength, " ",
				precision, scale, hasScale, "; ")
		}
		fmt.Println()
		for rows.Next() {
			row, places := make([]any, len(types)), make([]any, len(types))
			for k := range row {
				places[k] = &row[k]
			}
			script.Must(rows.Scan(places...))
			script.Show(row)
		}
	}
	if err := rows.Err(); err != nil {
		report(err)
	}
	script.Must(rows.Close())
}

func report(err error) {
	var known *pq.Error
	if errors.As(err, &known) {
		fmt.Println("error", fields(known))
	} else {
		fmt.Println("error", err)
	}
}

// fields are all that the server says about an error, down to the line of its source.
func fields(err *pq.Error) string {
	text := ""
	for _, key := range "SCMDHPpqWstcdnFLR" {
		text += fmt.Sprintf("%c=%q ", key, err.Get(byte(key)))
	}
	return text
}

func notifications(connection *sql.Conn, source string, n int) {
	listener := pq.NewListener(source, time.Second, time.Second, nil)
	channel := fmt.Sprintf("channel %d", n)
	script.Must(listener.Listen(channel))
	fmt.Println(listener.Listen(channel))
	run(connection, fmt.Sprintf("NOTIFY %s, 'it''s %d'", pq.QuoteIdentifier(channel), n))
	run(connection, "SELECT pg_notify('"+channel+"', 'second')")
	run(connection, "SELECT pg_notify($1, $2)", channel, "ünï")
	for k := 0; k < 3; k++ {
		select {
		case notification := <-listener.Notify:
			fmt.Printf("notified %q %q\n", notification.Channel, notification.Extra)
		case <-time.After(10 * time.Second):
			fmt.Println("not notified")
		}
	}
	script.Must(listener.Ping())
	script.Must(listener.UnlistenAll())
	script.Must(listener.Close())
}

// cancel gives a connection up, as the driver does when a context ends.
func cancel(db *sql.DB, n int) {
	connection := connect(db)
	limited, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	_, err := connection.QueryContext(limited, fmt.Sprintf("SELECT pg_sleep(20), %d", n))
	report(err)
	run(connection, "SELECT 1")
	fmt.Println(connection.Close())
	another := connect(db)
	run(another, fmt.Sprintf("SELECT %d + 1", n))
	script.Must(another.Close())
}
