package main

import (
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"os"
	"strings"
	"time"

	"clients/script"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// values sends each class of values with its type said and, where a mode can tell it, without.
func values(connection *pgx.Conn, n int) {
	for _, pair := range []struct {
		name  string
		value any
	}{
		{"int", n}, {"int", -n}, {"int8", int64(1)<<40 + int64(n)}, {"float8", -1.5},
		{"float8", math.NaN()}, {"float8", math.Inf(1)}, {"bool", true}, {"text", nil},
		{"numeric", pgtype.Numeric{Int: big.NewInt(-1250), Exp: -2, Valid: true}},
		{"text", "it's \\ a 'text' $1"}, {"text", "ünï ☃ 𝄞"}, {"text", ""},
		{"text", `\'; --`}, {"bytea", []byte("\x00\xff'\\")},
		{"interval", 25*time.Hour + time.Microsecond},
		{"date", time.Date(2020, 2, 29, 0, 0, 0, 0, time.UTC)},
		{"timestamp", time.Date(2020, 1, 2, 3, 4, 5, 6000, time.UTC)},
		{"timestamptz", time.Date(2020, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))},
		{"int[]", []int32{1, int32(n)}}, {"int[]", [][]int32{{1, 2}, {3, int32(n)}}},
		{"text[]", []string{"a", "b'c\\", "ü, \"d\""}}, {"text[]", []string{}},
		{"text[]", []*string{nil}}, {"jsonb", map[string]any{"q": "it's", "n": n}},
		{"jsonb", `[1, "two"]`}, {"uuid", [16]byte{15: byte(n)}}, {"uuid", "no uuid"},
		{"cidr", netip.MustParsePrefix("192.168.0.0/16")}, {"mood", "happy"},
		{"int4range", pgtype.Range[pgtype.Int4]{
			Lower: pgtype.Int4{Int32: 1, Valid: true}, LowerType: pgtype.Inclusive,
			Upper: pgtype.Int4{Int32: 9, Valid: true}, UpperType: pgtype.Exclusive, Valid: true,
		}},
	} {
		run(connection, "SELECT $1::"+pair.name+" AS v, 'x' AS x", pair.value)
		run(connection, "SELECT $1 AS v", pair.value)
	}
	run(connection, "SELECT 1-$1, 2 - $1::int, -$1::float8", -n)
	run(connection, "SELECT id, name FROM items WHERE id = $1 AND name <> $2", n, "it's \\")
	run(connection, "SELECT id FROM items WHERE id = ANY($1::int[]) ORDER BY id", []int32{int32(n)})
	run(connection, "SELECT d, by FROM every WHERE d = $1 AND by = $2 AND id = $3",
		time.Date(2020, 2, 29, 0, 0, 0, 0, time.UTC), []byte("\xde\xad\xbe\xef"), n)
	run(connection, "UPDATE every SET ta = $1, t = $2, by = $3 WHERE id = $4 RETURNING ta, t, by",
		[]string{"a'b"}, nil, []byte{0, 39, 92}, n)
	run(connection, "SELECT id FROM items WHERE id = @id AND price > @price",
		pgx.NamedArgs{"id": 50 + n, "price": 1.5})
	run(connection, "SELECT 10 / ($1::int - 5)", n)
	raw(connection, fmt.Sprintf("SELECT %d AS a, 'x' AS b; SELECT 1 / (%d - %d)", n, n, n))
	raw(connection, fmt.Sprintf("SELECT %d AS a; SELECT name FROM items WHERE id = %d", n, n))
	raw(connection, "")
	script.Must(connection.Ping(ctx))
	own, err := connection.Prepare(ctx, "own", "SELECT name, price FROM items WHERE id = $1")
	script.Must(err)
	columns(own.Fields)
	run(connection, "own", n)
	script.Must(connection.Deallocate(ctx, "own"))
}

func transactions(connection *pgx.Conn, n int) {
	limited, err := connection.BeginTx(ctx, pgx.TxOptions{
		IsoLevel: pgx.Serializable, AccessMode: pgx.ReadOnly, DeferrableMode: pgx.Deferrable,
	})
	script.Must(err)
	run(limited, "SELECT name FROM items WHERE id = $1", n)
	run(limited, "DELETE FROM items WHERE id = $1", n)
	run(limited, "SELECT 1")
	fmt.Println("commit", limited.Commit(ctx))

	outer, err := connection.Begin(ctx)
	script.Must(err)
	run(outer, "INSERT INTO items VALUES ($1, $2, 1, 1.5)", 5000+n, "outer")
	inner, err := outer.Begin(ctx)
	script.Must(err)
	run(inner, "INSERT INTO items VALUES ($1, $2, 1, 1.5)", 5000+n, "inner")
	script.Must(inner.Rollback(ctx))
	run(outer, "DECLARE c CURSOR FOR SELECT id FROM items WHERE id < 12 ORDER BY id")
	run(outer, "FETCH 4 FROM c")
	run(outer, "UPDATE items SET kind = $1 WHERE id = $2 RETURNING name, kind", n, 5000+n)
	raw(connection, fmt.Sprintf("SELECT name, kind FROM items WHERE id = %d", 5000+n))
	run(outer, "FETCH ALL FROM c")
	script.Must(outer.Commit(ctx))
	run(connection, "DELETE FROM items WHERE id = $1 RETURNING *", 5000+n)
}

// batches are pipelines, or one text of several statements in the mode simple_protocol.
func batches(connection *pgx.Conn, n int) {
	for _, divisor := range []int{1, 0} {
		batch := &pgx.Batch{}
		batch.Queue("INSERT INTO items VALUES ($1, $2)", 6000+n, "it's")
		batch.Queue("SELECT name FROM items WHERE id = $1", 6000+n)
		batch.Queue("SELECT 1 / $1::int", divisor)
		batch.Queue("DELETE FROM items WHERE id = $1", 6000+n)
		results := connection.SendBatch(ctx, batch)
		for k := 0; k < batch.Len(); k++ {
			show(results.Query())
		}
		report(results.Close())
	}
	run(connection, "SELECT count(*) FROM items WHERE id = $1", 6000+n)
}

func copies(connection *pgx.Conn, n int) {
	names := []string{"id", "name", "kind", "price"}
	rows := [][]any{{7000 + n, "it's\t\\ ü\n", n, 2.5}, {7100 + n, "two", nil, nil}}
	for k := 0; k < 2; k++ {
		source := pgx.CopyFromRows(rows)
		count, err := connection.CopyFrom(ctx, pgx.Identifier{"items"}, names, source)
		fmt.Println("copied", count)
		report(err)
	}
	for _, line := range []string{fmt.Sprintf("%d\tthree\t\\N\t1.5\n", 7200+n), "no\tnumber\n"} {
		source := strings.NewReader(line)
		tag, err := connection.PgConn().CopyFrom(ctx, source, "COPY items FROM STDIN")
		fmt.Println("tag", tag)
		report(err)
	}
	for _, table := range []string{"items", "missing"} {
		text := fmt.Sprintf("SELECT * FROM %s WHERE id > 7000 AND id %% 100 = %d", table, n)
		text = "COPY (" + text + " ORDER BY 1) TO STDOUT WITH CSV HEADER"
		tag, err := connection.PgConn().CopyTo(ctx, os.Stdout, text)
		fmt.Println("tag", tag)
		report(err)
	}
}
