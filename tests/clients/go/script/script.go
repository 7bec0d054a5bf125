// Package script has what the programs in Go share: the statements that every client runs, and
// values as text that says their type and is the same in every run.
package script

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Script is the directory of the files.
type Script string

// Read is the text of a file.
func (s Script) Read(name string) string {
	text, err := os.ReadFile(filepath.Join(string(s), name))
	Must(err)
	return string(text)
}

// Lines are the statements of a file, with n where it says so.
func (s Script) Lines(name string, n int) []string {
	text := strings.ReplaceAll(strings.TrimSpace(s.Read(name)), "@n@", strconv.Itoa(n))
	return strings.Split(text, "\n")
}

// Must ends the program if something failed that has to succeed.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// Type is the number of a built-in type; those of our own differ from database to database.
func Type(oid uint32) string {
	if oid < 16384 {
		return strconv.FormatUint(uint64(oid), 10)
	}
	return "own"
}

// Show prints one row.
func Show(values []any) {
	fmt.Print("  ")
	for _, value := range values {
		switch value := value.(type) {
		case nil:
			fmt.Print(" NULL |")
		case []byte:
			fmt.Printf(" bytes %q |", value)
		case time.Time:
			fmt.Printf(" time %s |", value.Format(time.RFC3339Nano))
		default:
			fmt.Printf(" %T %+v |", value, value)
		}
	}
	fmt.Println()
}
