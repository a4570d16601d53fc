package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"hub.internal/pkg/text"
)

// summary is what a person needs to know after `make up`.
func summary(out io.Writer, e environment) {
	values := devEnv(e)
	rel := func(path string) string {
		if r, err := filepath.Rel(e.layout.root, path); err == nil {
			return r
		}
		return path
	}
	fmt.Fprintf(out, "\nHub is up.\n\n")
	// A table for people; scripts read dev.env.
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "  URL\t%s\n", values["HUB_URL"])
	if key := values["HUB_API_KEY"]; key != "" {
		fmt.Fprintf(w, "  API key, all scopes\t%s\n", key)
		fmt.Fprintf(w, "  API key, read only\t%s\n", values["HUB_API_KEY_READONLY"])
	}
	fmt.Fprintf(w, "  Console\t%s/login\n", values["HUB_URL"])
	fmt.Fprintf(w, "  Reviewer\t%s  %s\n", values["HUB_REVIEWER_EMAIL"], values["HUB_REVIEWER_PASSWORD"])
	fmt.Fprintf(w, "  Administrator\t%s  %s\n", values["HUB_ADMIN_EMAIL"], values["HUB_ADMIN_PASSWORD"])
	fmt.Fprintf(w, "  Mail\t%s  (what was sent; kept in %s)\n", e.mailURL(), rel(e.layout.mail()))
	if app := values["HUB_SERVICE_CODE"]; app != "" {
		fmt.Fprintf(w, "  Connected App\t%s, whose %s is linked to the administrator  (bin/hub pay)\n", app, values["HUB_LINKED_USER"])
		fmt.Fprintf(w, "  Payment provider\t%s  (simulated: no money moves)\n", values["HUB_PGSIM_URL"])
		fmt.Fprintf(w, "  Notifications\t%s  (what the app was told)\n", values["HUB_ECHO_URL"])
	}
	source := "sample data in a private " + map[string]string{sampleMariaDB: "MariaDB", sampleMySQL: "MySQL"}[e.options.source] +
		" (" + sourceDatabase + ")"
	if e.options.sourceDSN != "" {
		source = "your own (SOURCE_DSN)"
	}
	fmt.Fprintf(w, "  Source database\t%s\n", source)
	if e.observers[jaeger] != "" {
		fmt.Fprintf(w, "  Traces\thttp://%s/api/traces?service=hub-gateway  (Jaeger's API; its pages are in no module)\n", e.state.addr(jaeger))
	}
	if e.observers[prometheus] != "" {
		fmt.Fprintf(w, "  Metrics, alerts\thttp://%s/api/v1/query?query=up, /api/v1/rules  (Prometheus' API)\n", e.state.addr(prometheus))
	}
	fmt.Fprintf(w, "  Settings for shells\t. %s\n", rel(e.layout.env()))
	fmt.Fprintf(w, "  Logs\t%s  (make logs)\n", rel(e.layout.path(".hub", "log")))
	w.Flush()
	fmt.Fprintf(out, "\nA first call:\n\n  . %s\n", rel(e.layout.env()))
	for _, call := range firstCalls(e.options) {
		fmt.Fprintf(out, "  curl -s -H \"Authorization: Bearer $HUB_API_KEY\" -d '%s' $HUB_URL/api/tools/%s\n", call.input, call.tool)
	}
	fmt.Fprintln(out)
}

// firstCalls are those that this source can answer: only the sample, and the marketplace itself,
// have the tables that most tools read.
func firstCalls(o upOptions) []struct{ tool, input string } {
	if o.sourceDSN == "" {
		return []struct{ tool, input string }{{"search_brands", `{"limit":3}`}}
	}
	return []struct{ tool, input string }{{"get_ddl", "{}"}, {"execute_read_sql", `{"sql":"SHOW TABLES"}`}}
}

// printStatus prints a table of what the supervisor runs. It is an error where no supervisor lives.
func printStatus(out io.Writer, l layout) error {
	c := control{l}
	pid, err := c.pid()
	if err != nil {
		return err
	}
	if pid == 0 {
		return errors.New("nothing runs; `make up` starts it")
	}
	now, err := c.status()
	if err != nil {
		return err
	}
	st, err := loadState(l)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tPID\tFOR\tRESTARTS\tMETRICS, PROFILES\tLAST ERROR")
	fmt.Fprintf(w, "supervisor\t%d\t\t\t\t\n", pid)
	for _, name := range slices.Sorted(maps.Keys(now.Programs)) {
		p := now.Programs[name]
		number := "down"
		if p.PID != 0 {
			number = strconv.Itoa(p.PID)
		}
		addr := ""
		if st.Ports[operations(name)] != 0 {
			addr = st.addr(operations(name))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", name, number, time.Since(p.Since).Round(time.Second), p.Restarts, addr,
			text.Shorten(p.Error, 100))
	}
	return w.Flush()
}

// logs hands over to tail.
// A name without a log is an error that lists those there are.
func logs(l layout, names []string) error {
	files, err := filepath.Glob(l.log("*"))
	if err != nil {
		return err
	}
	if len(names) > 0 {
		known := make([]string, len(files))
		for i, f := range files {
			known[i] = strings.TrimSuffix(filepath.Base(f), ".log")
		}
		if !slices.Contains(known, names[0]) {
			return fmt.Errorf("no log of %q; there are: %s", names[0], strings.Join(known, " "))
		}
		files = []string{l.log(names[0])}
	}
	if len(files) == 0 {
		return errors.New("no logs yet; `make up` writes them")
	}
	tail, err := exec.LookPath("tail")
	if err != nil {
		return err
	}
	return syscall.Exec(tail, append([]string{"tail", "-n", "40"}, files...), os.Environ())
}
