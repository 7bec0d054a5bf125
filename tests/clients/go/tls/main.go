// pgx or lib/pq: a login at each door that is named, and a few statements behind it.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	_ "github.com/lib/pq"
)

const text = "SELECT relname FROM pg_class WHERE relname = 'pg_type'"

func main() {
	visit := byPgx
	if os.Args[1] == "pq" {
		visit = byPq
	}
	for _, place := range os.Args[2:] {
		name, total, err := visit(place)
		if err != nil {
			fmt.Println("refused", strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		fmt.Println(name, total)
	}
}

func byPgx(place string) (name string, total int, err error) {
	ctx := context.Background()
	connection, err := pgx.Connect(ctx, place+" default_query_exec_mode=simple_protocol")
	if err != nil {
		return
	}
	defer connection.Close(ctx)
	for k := 0; k < 3 && err == nil; k++ {
		err = connection.QueryRow(ctx, text).Scan(&name)
	}
	if err == nil {
		err = connection.QueryRow(ctx, "SELECT 40 + $1::int", 2).Scan(&total)
	}
	return
}

func byPq(place string) (name string, total int, err error) {
	db, err := sql.Open("postgres", place)
	if err != nil {
		return
	}
	defer db.Close()
	for k := 0; k < 3 && err == nil; k++ {
		err = db.QueryRow(text).Scan(&name)
	}
	if err == nil {
		err = db.QueryRow("SELECT 40 + $1::int", 2).Scan(&total)
	}
	return
}
