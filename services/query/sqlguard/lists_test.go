package sqlguard_test

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/services/query/sqlguard"
	"hub.internal/services/query/sqlguard/advice"
)

// errNoFunction are the errors of a call of a stored function that is not there.
var errNoFunction = []uint16{1305, 1630}

// TestListsAndServer holds the lists against what a server has: the guard knows each
// function of its own, and what the guard takes for built in or for grammar is no stored
// function there.
func TestListsAndServer(t *testing.T) {
	o := newOracle(t)
	c := o.connect(t, o.admin, nil)
	column := func(query string) (values []string) {
		rows, err := c.run(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			values = append(values, strings.TrimSuffix(strings.TrimPrefix(row, "[{"), " true}]"))
		}
		return values
	}
	call := func(name, arguments string) uint16 {
		_, err := c.run(t.Context(), "SELECT "+name+"("+arguments+")")
		return errno(t, err)
	}
	words := column("SELECT UPPER(word) FROM information_schema.KEYWORDS")
	if hubtest.SourceIsMySQL() {
		words = append(words, column("SELECT UPPER(name) FROM mysql.help_topic")...) // functions among them, and no list of them alone
	} else {
		functions := column("SELECT UPPER(function) FROM information_schema.SQL_FUNCTIONS")
		if len(functions) < 200 {
			t.Fatalf("only %d functions", len(functions))
		}
		for _, name := range functions {
			if sqlguard.Known(name) == "" {
				t.Errorf("the server has %s(), which is on neither list", name)
			}
		}
	}
	if len(words) < 500 {
		t.Fatalf("only %d words", len(words))
	}
	for _, word := range words {
		if !isWord(word) || word == "SHUTDOWN" {
			continue
		}
		for _, arguments := range []string{"", "1", "1, 1", "1, 1, 1"} {
			if number := call(word, arguments); number != 1064 && !slices.Contains(errNoFunction, number) && sqlguard.Known(word) == "" {
				t.Errorf("the keyword %s is a function of (%s), which is on neither list (error %d)", word, arguments, number)
			}
		}
	}
	for name := range sqlguard.Functions(here.dialect) {
		// JSON_TABLE is a table.
		if number := call(name, "1"); slices.Contains(errNoFunction, number) && name != "JSON_TABLE" {
			t.Errorf("%s() is on the list, but the server has no such function (error %d)", name, number)
		}
	}
	for _, word := range sqlguard.GrammarWords() {
		if number := call(word, "1"); slices.Contains(errNoFunction, number) {
			t.Errorf("%s is taken for grammar, but the server looks for a stored function of that name", word)
		}
	}
}

func isWord(s string) bool { return strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == "" }

func TestOptions(t *testing.T) {
	for name, want := range map[string]string{
		"f_net": "", "shop.f_net": "", "`f`": "no function's name", "f g": "no function's name", "a.b.c": "no function's name",
		"": "no function's name", "shop.": "no function's name",
		".f": "no function's name", "f()": "no function's name", "f;": "no function's name", "계산": "", "shop.distance": "",
		"crm_schema.f": "", "f$1": "",
		"concat": "anyway", "Load_File": "refused", "st_area": "refused", "spider_direct_sql": "refused", "select": "refused",
		"decimal": "refused", "get_lock": "refused",
		"mysql.f": "own schema", "sys.ps_is_account_enabled": "own schema", "information_schema.f": "own schema",
		"mariadb_schema.load_file": "own schema", "oracle_schema.f": "own schema", "SYS_EXEC": "refused",
	} {
		_, err := sqlguard.New(sqlguard.Options{Functions: []string{"f_first", name}})
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
	for text, accepted := range map[string]bool{
		"SELECT f_named(1)": true, "SELECT F_NAMED (1)": true, "SELECT `f_named`(1)": true, "SELECT shop.f_named(1)": true,
		"SELECT `shop` . f_named (1)": true,
		"SELECT other.f_named(1)":     false, "SELECT a.shop.f_named(1)": false, "SELECT f_namedx(1)": false, "SELECT f_nämed(1)": false,
	} {
		if _, err := guard.Parse(text); (err == nil) != accepted {
			t.Errorf("%s: %v", text, err)
		}
	}
	// The message is for whoever wrote the statement, and for the operator.
	_, err := guard.Parse("SELECT f_other(1)")
	if err == nil || !strings.Contains(err.Error(), "F_OTHER()") || !strings.Contains(err.Error(), "HUB_SQL_FUNCTIONS") {
		t.Errorf("the refusal says %v", err)
	}
	// The bound is the operator's.
	small, err := sqlguard.New(sqlguard.Options{MaxResultBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for text, accepted := range map[string]bool{"SELECT SPACE(1000)": true, "SELECT SPACE(1001)": false,
		"SELECT REPEAT('abcd', 501)": false, "SELECT REPEAT('', 5000)": false, "SELECT RPAD('a', 2000, '')": true,
		"SELECT RPAD('a', 2000)": false} {
		_, err := small.Parse(text)
		if (err == nil) != accepted || err != nil && !strings.Contains(err.Error(), "1000") {
			t.Errorf("%s at 1000 bytes: %v", text, err)
		}
		if _, err := sqlguard.Default(0).Parse(text); err != nil {
			t.Errorf("%s without a bound: %v", text, err)
		}
	}
}

// TestShowRuns is what becomes of the SHOW that a session's state would show in.
func TestShowRuns(t *testing.T) {
	for text, want := range map[string]string{
		"SHOW STATUS":                       "SHOW GLOBAL STATUS",
		"show/**/status like 'a' -- x":      "show/**/GLOBAL status like 'a' -- x",
		"SHOW GLOBAL STATUS":                "SHOW GLOBAL STATUS",
		"SHOW TABLE STATUS":                 "SHOW TABLE STATUS",
		"SHOW GLOBAL VARIABLES LIKE 'a'":    "SHOW GLOBAL VARIABLES LIKE 'a'",
		"SHOW PROCEDURE STATUS":             "SHOW PROCEDURE STATUS\nWHERE Db <> 'sys'",
		"SHOW FUNCTION STATUS LIKE 'a%'":    "SHOW FUNCTION STATUS WHERE Name LIKE 'a%'\nAND Db <> 'sys'",
		"SHOW VARIABLES -- x":               "SHOW VARIABLES -- x\nWHERE @",
		"SHOW SESSION VARIABLES LIKE 'a%'":  "SHOW SESSION VARIABLES WHERE Variable_name LIKE 'a%'\nAND @",
		"SHOW VARIABLES WHERE 1 OR Value=2": "SHOW VARIABLES WHERE ( 1 OR Value=2\n) AND @",
	} {
		got, edited := mustParse(t, text).Capped(5)
		if i := strings.Index(got, "Variable_name NOT IN ('error_count', "); i >= 0 {
			got = got[:i] + "@"
		}
		if got != want || edited {
			t.Errorf("%s runs as %q (edited %t), want %q", text, got, edited, want)
		}
	}
}

// TestFunctionsOfEachServer: what the list says a server has, it has; what it lacks, somebody is told what to write for; and so
// with what a server does not know once there is a space before its parenthesis.
func TestFunctionsOfEachServer(t *testing.T) {
	hubtest.SourceServers(t, func(t *testing.T, on *localserver.SourceServer) {
		version, err := on.Version(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kind, other := "mysql", "mariadb"
		if strings.Contains(version, "MariaDB") {
			kind, other = other, kind
		}
		_, dsn := hubtest.SourceDBOn(t, on)
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		isThere := func(text string) bool {
			_, err := db.ExecContext(t.Context(), text)
			return !slices.Contains([]uint16{1305, 1370, 1630}, errno(t, err))
		}
		for name := range sqlguard.Functions(kind) {
			if name != "JSON_TABLE" && !isThere("SELECT "+name+"(1)") { // a table
				t.Errorf("%s() is on the list, but the server has no such function", name)
			}
			if text := "SELECT " + name + " (1)"; name != "JSON_TABLE" && !isThere(text) && advice.Spaced(text, name) == "" {
				t.Errorf("%s: nobody is told that the space is wrong", text)
			}
		}
		here := sqlguard.Functions(kind)
		for name := range sqlguard.Functions(other) {
			if _, all := here[name]; all {
				continue
			}
			if !isThere("SELECT "+name+"(1)") && advice.Foreign(name) == "" {
				t.Errorf("%s() is of another server, and nobody is told what to write", name)
			}
		}
	})
}
