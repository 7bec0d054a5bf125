// pgx in one of its query modes. What has no values goes by the simple protocol in every mode if
// no rows are asked for; in the mode simple_protocol everything does, with the values in the text.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"clients/script"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var ctx = context.Background()

func main() {
	files, mode := script.Script(os.Args[1]), os.Args[2]
	// The driver makes some times local, and does not know PGTZ.
	time.Local = time.UTC
	config, err := pgx.ParseConfig("timezone=UTC default_query_exec_mode=" + mode)
	script.Must(err)
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
		fmt.Printf("  notice %+v\n", *notice)
	}
	connection := connect(config)
	_, err = connection.Exec(ctx, files.Read("setup.sql"))
	script.Must(err)
	for n := 1; n <= 8; n++ {
		for _, text := range files.Lines("statements.sql", n) {
			either(connection, n, text)
		}
		values(connection, n)
		transactions(connection, n)
		batches(connection, n)
		copies(connection, n)
		notifications(connection, n)
		if n > 6 {
			cancel(connection, n)
			giveUp(connection, config, n)
		}
	}
	for n := 1; n <= 8; n++ {
		for _, text := range files.Lines("changes.sql", n) {
			either(connection, n, text)
		}
	}
	script.Must(connection.Close(ctx))
}

func connect(config *pgx.ConnConfig) *pgx.Conn {
	connection, err := pgx.ConnectConfig(ctx, config)
	script.Must(err)
	return connection
}

// either runs a text in the mode of the connection, for its tag only, or below all modes.
func either(connection *pgx.Conn, n int, text string) {
	switch n % 3 {
	case 0:
		tag, err := connection.Exec(ctx, text)
		fmt.Println("tag", tag)
		report(err)
	case 1:
		run(connection, text)
	case 2:
		raw(connection, text)
	}
}

// queryer is a connection or a transaction.
type queryer interface {
	Query(ctx context.Context, text string, values ...any) (pgx.Rows, error)
}

func run(connection queryer, text string, values ...any) {
	show(connection.Query(ctx, text, values...))
}

func show(rows pgx.Rows, err error) {
	if err != nil {
		report(err)
		return
	}
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			fmt.Println("no values:", err)
			break
		}
		script.Show(values)
	}
	rows.Close()
	columns(rows.FieldDescriptions())
	fmt.Println("tag", rows.CommandTag())
	report(rows.Err())
}

func columns(fields []pgconn.FieldDescription) {
	for _, field := range fields {
		fmt.Print(field.Name, " ", field.TableOID > 0, field.TableAttributeNumber, " ",
			script.Type(field.DataTypeOID), " ", field.DataTypeSize, field.TypeModifier,
			field.Format, "; ")
	}
	fmt.Println()
}

// raw shows every result of a simple query as the server's own text.
func raw(connection *pgx.Conn, text string) {
	results, err := connection.PgConn().Exec(ctx, text).ReadAll()
	for _, result := range results {
		columns(result.FieldDescriptions)
		for _, row := range result.Rows {
			fmt.Printf("  %q\n", row)
		}
		fmt.Println("tag", result.CommandTag, result.Err != nil)
	}
	report(err)
}

// report prints all that the server says about an error, down to the line of its source.
func report(err error) {
	var known *pgconn.PgError
	switch {
	case err == nil:
	case errors.As(err, &known):
		fmt.Printf("error %+v\n", *known)
	default:
		// The driver shows a value that it cannot send with the addresses of its parts.
		before, _, _ := strings.Cut(err.Error(), " encode ")
		fmt.Println("error", before)
	}
}

func notifications(connection *pgx.Conn, n int) {
	channel := pgx.Identifier{fmt.Sprintf("channel %d", n)}
	raw(connection, "LISTEN "+channel.Sanitize())
	raw(connection, fmt.Sprintf("NOTIFY %s, 'it''s %d'", channel.Sanitize(), n))
	raw(connection, "SELECT pg_notify('"+channel[0]+"', 'second')")
	run(connection, "SELECT pg_notify($1, $2)", channel[0], "ünï")
	for k := 0; k < 3; k++ {
		limited, stop := context.WithTimeout(ctx, 10*time.Second)
		notification, err := connection.WaitForNotification(limited)
		script.Must(err)
		own := notification.PID == connection.PgConn().PID()
		fmt.Printf("notified %q %q %v\n", notification.Channel, notification.Payload, own)
		stop()
	}
	raw(connection, "UNLISTEN *")
}

// cancel asks the server to stop a query; the connection stays.
func cancel(connection *pgx.Conn, n int) {
	asked := make(chan error)
	go func() {
		time.Sleep(300 * time.Millisecond)
		asked <- connection.PgConn().CancelRequest(ctx)
	}()
	run(connection, fmt.Sprintf("SELECT pg_sleep(20), %d", n))
	script.Must(<-asked)
	run(connection, "SELECT $1::int + 1", n)
}

// giveUp ends a context: the driver asks the server to stop, and closes the connection.
func giveUp(connection *pgx.Conn, config *pgx.ConnConfig, n int) {
	doomed := connect(config)
	limited, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	_, err := doomed.Exec(limited, fmt.Sprintf("SELECT pg_sleep(20), %d", n))
	fmt.Println("gave up:", err, doomed.IsClosed())
	<-doomed.PgConn().CleanupDone()
	const alive = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1::int"
	for k := 0; k < 100; k++ {
		var count int
		script.Must(connection.QueryRow(ctx, alive, int(doomed.PgConn().PID())).Scan(&count))
		if count == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Println("its server process still runs")
}
