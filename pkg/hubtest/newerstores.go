package hubtest

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"hub.internal/pkg/localserver"
)

// storesVariable is the variable that has tests run on the PostgreSQL, PgBouncer and Valkey of Debian's next release, which
// lie beside the system, in place of the system's PostgreSQL, PgBouncer and Redis.
const storesVariable = "HUB_TEST_STORES"

func besideStores() bool { return os.Getenv(storesVariable) == "beside" }

// NewerStores runs tests of this binary once more, on the PostgreSQL, PgBouncer and Valkey of Debian's next release: those
// that the pattern names in full, none where it is empty, or all of them where HUB_TEST_SERVERS is "all" or HUB_TEST_ALL is set. The
// subtest has the versions in its name. It is skipped, with the line that says what is missing, where one of them is not on this machine.
func NewerStores(t *testing.T, pattern string) {
	t.Helper()
	if besideStores() {
		t.Skip("these are the newer ones")
	}
	var names []string
	for _, b := range localserver.SideBySideStores() {
		version, err := b.Version()
		if err != nil {
			t.Run(b.Name, func(t *testing.T) { t.Skip(err) })
			return
		}
		names = append(names, b.Name+" "+version)
	}
	if os.Getenv("HUB_TEST_SERVERS") == "all" || os.Getenv("HUB_TEST_ALL") != "" {
		pattern = ".*"
	}
	if pattern == "" {
		t.Skip("HUB_TEST_SERVERS=all runs these tests on newer stores")
	}
	t.Run(strings.Join(names, ", "), func(t *testing.T) { again(t, pattern, storesVariable+"=beside") })
}

// outcomes are the lines in which a verbose test binary tells how each test ended.
var outcomes = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (\S+)`)

// again runs the tests of this binary that the pattern names in a process of its own, with this in its environment.
func again(t *testing.T, pattern string, environ ...string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var out Buffer
	p, err := localserver.StartProgram(localserver.Program{Path: self, Dir: dir, Output: &out, Env: append(os.Environ(), environ...),
		Args: []string{"-test.v", "-test.count=1", "-test.timeout=30m", "-test.run=^(" + pattern + ")$"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	<-p.Done()
	ended := map[string][]string{}
	for _, found := range outcomes.FindAllStringSubmatch(out.String(), -1) {
		ended[found[1]] = append(ended[found[1]], found[2])
	}
	t.Logf("%d passed, %d failed, %d skipped %s", len(ended["PASS"]), len(ended["FAIL"]), len(ended["SKIP"]), ended["SKIP"])
	if p.ExitCode() != 0 || len(ended["PASS"]) == 0 {
		t.Errorf("%s, exit code %d:\n%s", cmp.Or(strings.Join(ended["FAIL"], ", "), "no test failed"), p.ExitCode(), telling(out.String()))
	}
}

// telling are the lines of a verbose test binary that say more than that a test began or passed.
func telling(out string) string {
	var kept strings.Builder
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "=== ") && !strings.Contains(line, "--- PASS: ") {
			fmt.Fprint(&kept, line)
		}
	}
	return kept.String()
}
