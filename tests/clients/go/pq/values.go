package main

import (
	"database/sql"
	"fmt"
	"math"
	"time"

	"clients/script"

	"github.com/lib/pq"
)

// values sends each class of values as a literal, as an argument, and to a prepared statement.
func values(connection *sql.Conn, n int) {
	for _, text := range []string{"it's \\ a 'text' $1", "ünï ☃ 𝄞", "", "\t\n\"", `\'; --`} {
		run(connection, "SELECT "+pq.QuoteLiteral(text)+" AS w, length("+pq.QuoteLiteral(text)+")")
		run(connection, fmt.Sprintf("SELECT id, name FROM items WHERE id = %d AND name <> %s",
			n, pq.QuoteLiteral(text)))
		run(connection, "SELECT $1::text AS w, length($1)", text)
	}
	for _, pair := range []struct {
		name  string
		value any
	}{
		{"int", n}, {"int", -n}, {"int8", int64(1)<<40 + int64(n)}, {"numeric", "12.50"},
		{"float8", 1.5}, {"float8", math.NaN()}, {"float8", math.Inf(1)}, {"bool", true},
		{"text", nil}, {"bytea", []byte("\x00\xff'\\")},
		{"date", time.Date(2020, 2, 29, 0, 0, 0, 0, time.UTC)},
		{"timestamp", time.Date(2020, 1, 2, 3, 4, 5, 6000, time.UTC)},
		{"timestamptz", time.Date(2020, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))},
		{"interval", "1 day 00:00:02"}, {"int[]", pq.Array([]int64{1, int64(n)})},
		{"text[]", pq.Array([]string{"a", "b'c\\", "ü, \"d\""})}, {"text[]", pq.Array([]string{})},
		{"bytea[]", pq.Array([][]byte{{0, 255}, nil})}, {"jsonb", `{"q": "it's"}`},
		{"uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}, {"int4range", "[1,9)"},
		{"mood", "happy"}, {"int", "no number"},
	} {
		run(connection, "SELECT $1::"+pair.name+" AS v", pair.value)
	}
	run(connection, "SELECT d, by FROM every WHERE d = $1 AND by = $2 AND id = $3",
		"2020-02-29", []byte("\xde\xad\xbe\xef"), n)
	run(connection, "UPDATE every SET ta = $1, t = $2, by = $3 WHERE id = $4 RETURNING ta, t, by",
		pq.Array([]string{"a'b"}), nil, []byte{0, 39, 92}, n)
	run(connection, fmt.Sprintf("SELECT %d AS a, 'x' AS b; SELECT 1 / (%d - %d)", n, n, n))
	run(connection, fmt.Sprintf("SELECT %d AS a; SELECT name FROM items WHERE id = %d", n, n))
	run(connection, "")
	script.Must(connection.PingContext(ctx))
	own, err := connection.PrepareContext(ctx, "SELECT name, price FROM items WHERE id = $1")
	script.Must(err)
	for k := 0; k < 3; k++ {
		rows, err := own.QueryContext(ctx, n+k)
		script.Must(err)
		show(rows)
	}
	script.Must(own.Close())
}

func transactions(connection *sql.Conn, n int) {
	limited, err := connection.BeginTx(ctx, &sql.TxOptions{
		Isolation: sql.LevelSerializable, ReadOnly: true,
	})
	script.Must(err)
	run(limited, fmt.Sprintf("SELECT name FROM items WHERE id = %d", n))
	run(limited, fmt.Sprintf("DELETE FROM items WHERE id = %d", n))
	run(limited, "SELECT 1")
	fmt.Println("commit", limited.Commit())

	usual, err := connection.BeginTx(ctx, nil)
	script.Must(err)
	run(usual, fmt.Sprintf("INSERT INTO items VALUES (%d, 'tx', 1, 1.5)", 5000+n))
	run(usual, "SAVEPOINT one")
	run(usual, fmt.Sprintf("INSERT INTO items VALUES (%d, 'tx', 1, 1.5)", 5000+n))
	run(usual, "ROLLBACK TO SAVEPOINT one")
	run(usual, "UPDATE items SET kind = $1 WHERE id = $2 RETURNING kind", n, 5000+n)
	run(usual, "DECLARE c CURSOR FOR SELECT id FROM items WHERE id < 12 ORDER BY id")
	run(usual, "FETCH 4 FROM c")
	run(usual, fmt.Sprintf("SELECT name, kind FROM items WHERE id = %d", 5000+n))
	run(usual, "FETCH ALL FROM c")
	script.Must(usual.Commit())
	run(connection, fmt.Sprintf("DELETE FROM items WHERE id = %d RETURNING *", 5000+n))
}

func copies(connection *sql.Conn, n int) {
	for _, id := range []int{7000 + n, 7000 + n} {
		transaction, err := connection.BeginTx(ctx, nil)
		script.Must(err)
		statement, err := transaction.PrepareContext(ctx, pq.CopyIn("items", "id", "name", "price"))
		script.Must(err)
		for k := 0; k < 3; k++ {
			_, err = statement.ExecContext(ctx, id+100*k, "it's\t\\ ü\n", nil)
			script.Must(err)
		}
		if _, err = statement.ExecContext(ctx); err != nil {
			report(err)
			script.Must(transaction.Rollback())
			continue
		}
		script.Must(statement.Close())
		script.Must(transaction.Commit())
		run(connection, fmt.Sprintf("SELECT * FROM items WHERE id IN (%d, %d)", id, id+100))
	}
}
