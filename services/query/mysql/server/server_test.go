package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
)

func openSource(t testing.TB, dsn string, o Options) *Server {
	t.Helper()
	s, err := Open(dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestOpenRefuses(t *testing.T) {
	for dsn, want := range map[string]string{
		"":                               "HUB_SOURCE_DSN names no database",
		"user:secret@tcp(host:3306)/":    "HUB_SOURCE_DSN names no database",
		"user:secret@host":               "HUB_SOURCE_DSN is not a data source name",
		"u:secret@tcp(h:1)/d?sql_mode=x": "HUB_SOURCE_DSN sets the session variable sql_mode",
	} {
		if _, err := Open(dsn, Options{}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Open(%q): %v, want %q", dsn, err, want)
		}
	}
	s, err := Open("u:p@tcp(h:1)/d?multiStatements=true&allowAllFiles=true&parseTime=true&interpolateParams=false&clientFoundRows=true&"+
		"columnsWithAlias=true", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if c := s.config; c.MultiStatements || c.AllowAllFiles || c.ParseTime || !c.InterpolateParams || c.ClientFoundRows || c.ColumnsWithAlias {
		t.Errorf("the DSN decides what it must not: %+v", c)
	}
}

func TestSessions(t *testing.T) {
	_, dsn := hubtest.SourceDB(t)
	s := openSource(t, dsn, Options{PoolSize: 3, StatementTimeout: 1500 * time.Millisecond})
	dialect, readOnly, limit, seconds := MariaDB, "@@tx_read_only", "@@max_statement_time", "1.5"
	if hubtest.SourceIsMySQL() {
		dialect, readOnly, limit, seconds = MySQL, "@@transaction_read_only", "@@max_execution_time / 1000", "1.5000"
	}
	if d, err := s.Dialect(t.Context()); d != dialect || err != nil {
		t.Fatalf("dialect %q, %v", d, err)
	}
	var got [6]string
	err := s.DB().QueryRow(`SELECT `+readOnly+`, `+limit+`, @@time_zone, @@sql_mode, @@lock_wait_timeout, @@character_set_client`).
		Scan(&got[0], &got[1], &got[2], &got[3], &got[4], &got[5])
	if want := [6]string{"1", seconds, "+00:00", sqlMode, "5", "utf8mb4"}; err != nil || got != want {
		t.Errorf("session %q, %v, want %q", got, err, want)
	}
	if _, err := s.DB().Exec(`INSERT INTO category VALUES (1, 0, 0)`); err == nil {
		t.Error("the session writes")
	}
	if _, err := s.DB().Exec(`SELECT 1; SELECT 2`); err == nil {
		t.Error("the session takes two statements at once")
	}
}

func TestSessionsOfOtherServers(t *testing.T) {
	for version, want := range map[string]Dialect{
		"10.11.19-MariaDB-0+deb12u1": MariaDB, "5.5.5-11.4.2-MariaDB": MariaDB, "8.0.43": MySQL, "8.4.0-commercial": MySQL,
		"8.0.11-TiDB-v7.5.1": TiDB,
	} {
		if got := dialectOf(version); got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
	mysql8 := SessionVariables(MySQL, 1500*time.Millisecond)
	if mysql8["max_execution_time"] != "1500" || mysql8["transaction_read_only"] != "1" || mysql8["max_statement_time"] != "" ||
		mysql8["tx_read_only"] != "" {
		t.Errorf("MySQL: %v", mysql8)
	}
	if tidb := SessionVariables(TiDB, time.Microsecond); tidb["max_execution_time"] != "1" || tidb["transaction_read_only"] != "" {
		t.Errorf("TiDB: %v", tidb)
	}
}

func TestFault(t *testing.T) {
	server := func(number uint16) error {
		return &mysqldriver.MySQLError{Number: number, Message: "Table 'shop.campaign' doesn't exist"}
	}
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want fault.Code
	}{
		{t.Context(), nil, ""},
		{t.Context(), server(1969), fault.DBTimeout},
		{t.Context(), server(3024), fault.DBTimeout},
		{t.Context(), context.DeadlineExceeded, fault.DBTimeout},
		{late, mysqldriver.ErrInvalidConn, fault.DBTimeout},
		{t.Context(), server(1205), fault.DB},
		{t.Context(), server(1213), fault.DB},
		{t.Context(), server(1040), fault.DB},
		{t.Context(), Connecting(server(1044)), fault.DB},
		{t.Context(), Connecting(server(1045)), fault.DB},
		{t.Context(), Connecting(server(1049)), fault.DB},
		{t.Context(), server(1045), fault.NotFound}, // of a view whose definer is gone
		{t.Context(), mysqldriver.ErrInvalidConn, fault.DB},
		{t.Context(), fmt.Errorf("wrapped: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), fault.DB},
		{t.Context(), sql.ErrConnDone, fault.DB},
		{t.Context(), server(1146), fault.NotFound},
		{t.Context(), server(1142), fault.NotFound},
		{t.Context(), server(1054), fault.NotFound},
		{t.Context(), server(1064), fault.Internal},
		{t.Context(), errors.New("sql: Scan error"), fault.Internal},
		{t.Context(), fault.New(fault.RateLimit, "x"), fault.RateLimit},
	} {
		got := Fault(c.ctx, c.err)
		if c.err == nil && got != nil || c.err != nil && fault.From(got).Code != c.want {
			t.Errorf("%v is %v, want %s", c.err, got, c.want)
		}
	}
	for message, want := range map[string]string{
		"Table 'shop.campaign' doesn't exist":                                       "campaign",
		"Table 'campaign' doesn't exist":                                            "campaign",
		"SELECT command denied to user 'r'@'localhost' for table `shop`.`campaign`": "campaign",
		"SELECT command denied to user 'r'@'localhost' for table 'campaign'":        "campaign",
		"something else": "?",
	} {
		if got := tableIn(message); got != want {
			t.Errorf("table in %q is %q, want %q", message, got, want)
		}
	}
}

func TestTheEndOfAResultIsRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		last []byte
		want bool
	}{
		"EOF, none":                    {[]byte{9, 9, 9, 9, 9, 9, 9, 5, 0, 0, 7, 0xfe, 0, 0, 2, 0}, false},
		"EOF, three":                   {[]byte{9, 9, 9, 9, 9, 9, 9, 5, 0, 0, 7, 0xfe, 3, 0, 2, 0}, true},
		"OK, none":                     {[]byte{9, 9, 9, 9, 9, 7, 0, 0, 7, 0xfe, 0, 0, 2, 0, 0, 0}, false},
		"OK, 256":                      {[]byte{9, 9, 9, 9, 9, 7, 0, 0, 7, 0xfe, 0, 0, 2, 0, 0, 1}, true},
		"what cannot be read may have": {[]byte{9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}, true},
		"nothing":                      {nil, true},
	} {
		if got := warned(c.last); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
