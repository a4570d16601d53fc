package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
)

var update = flag.Bool("update", false, "write the figures of deploy/README.md anew")

// mix is what the worked plan of deploy/README.md assumes: at which concurrency a workload was measured, and the share of its calls.
var mix = []struct {
	workload    string
	concurrency int
	share       float64
}{{"point", 16, 0.7}, {"brands", 16, 0.2}, {"rows1000", 16, 0.1}, {"rows10000", 8, 0}}

// TestSizingFollowsTheReport: the table of deploy/README.md and the sums of its plan are those of the kept report.
func TestSizingFollowsTheReport(t *testing.T) {
	root := hubtest.Root(t)
	report, err := os.ReadFile(filepath.Join(root, "scripts", "bench", "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme := filepath.Join(root, "deploy", "README.md")
	said, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	want := string(said)
	for pattern, text := range sizing(t, string(report)) {
		at := regexp.MustCompile(pattern)
		if len(at.FindAllString(want, -1)) != 1 {
			t.Errorf("deploy/README.md has no, or several, %s", pattern)
		}
		want = at.ReplaceAllString(want, text)
	}
	if want == string(said) {
		return
	}
	if *update {
		if err := os.WriteFile(readme, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have := strings.Split(string(said), "\n")
	for i, line := range strings.Split(want, "\n") {
		if line != have[i] {
			t.Errorf("deploy/README.md does not say what the report does; go test ./scripts/bench -run TestSizing -update writes\n%s", line)
		}
	}
}

// sizing is what the report says, by a pattern of what says so in deploy/README.md.
func sizing(t *testing.T, report string) map[string]string {
	t.Helper()
	head := regexp.MustCompile(`(?m)^Commit (\w+), .*\n\n(\d{4}-\d\d-\d\d)T`).FindStringSubmatch(report)
	if head == nil {
		t.Fatal("the report has no commit or no date")
	}
	texts := map[string]string{`\(commit \w+, \d{4}-\d\d-\d\d,`: fmt.Sprintf("(commit %s, %s,", head[1], head[2])}
	rates, plan, mostOfAuth := "", map[string]float64{}, 0.0
	processes := map[string]string{"gateway": "gateway", "query": "query", "source (MariaDB)": "mariadb",
		"PostgreSQL (audit rows)": "postgres"}
	lines := map[string]string{}
	for _, m := range mix {
		cpu, rate := hubsCell(t, report, m.workload, m.concurrency)
		for shown, process := range processes {
			lines[shown] += " " + significant(1000/cpu[process], 3) + " |"
			plan[process] += 1000 * m.share * cpu[process] / 1000
		}
		rates += " " + significant(rate, 3) + " |"
		mostOfAuth = max(mostOfAuth, cpu["auth"])
	}
	for shown, line := range lines {
		texts[`(?m)^\| `+regexp.QuoteMeta(shown)+` \|( [\d,]+ \|){4}$`] = "| " + shown + " |" + line
	}
	texts[`(?m)^\| measured, all of it on the 2 cores \|( [\d,]+ \|){4}$`] = "| measured, all of it on the 2 cores |" + rates
	texts[`auth took at most [\d.]+ s per`] = fmt.Sprintf("auth took at most %.3f s per", mostOfAuth)
	texts[`[\d.]+ s of gateway, [\d.]+ of query,\s[\d.]+ of the source,\s[\d.]+ of PostgreSQL`] = fmt.Sprintf(
		"%s s of gateway, %s of query, %s of the source, %s of PostgreSQL", significant(plan["gateway"], 2), significant(plan["query"], 2),
		significant(plan["mariadb"], 2), significant(plan["postgres"], 2))
	for shown, process := range map[string]string{"gateway": "gateway", "query": "query", "source": "mariadb"} {
		cores := 2 * plan[process] // each half busy
		texts[`(?m)^(\| `+shown+` \| [^|]+ \| )[\d.]+( cores?: [^|]+\| )[\d.]+( cores: )`] = fmt.Sprintf("${1}%s${2}%s${3}",
			significant(cores, 2), significant(100*cores, 2))
	}
	return texts
}

// hubsCell is what a call of hub cost, in CPU seconds per 1,000 calls by process, and how many there were in a second.
func hubsCell(t *testing.T, report, workload string, c int) (cpu map[string]float64, rate float64) {
	t.Helper()
	_, section, _ := strings.Cut(report, "\n## "+workload+":")
	section, _, _ = strings.Cut(section, "\n## ")
	row := fmt.Sprintf(`(?m)^\| %d \| hub \| `, c)
	calls := regexp.MustCompile(row + `(\d+) \|`).FindStringSubmatch(section)
	each := regexp.MustCompile(row + `(auth [^|]+) \|$`).FindStringSubmatch(section)
	if calls == nil || each == nil {
		t.Fatalf("the report lacks hub at concurrency %d of %s", c, workload)
	}
	cpu = map[string]float64{}
	for process := range strings.SplitSeq(each[1], ", ") {
		name, seconds, _ := strings.Cut(process, " ")
		n, err := strconv.ParseFloat(seconds, 64)
		if err != nil {
			t.Fatal(err)
		}
		cpu[name] = n
	}
	rate, err := strconv.ParseFloat(calls[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return cpu, rate
}

// significant writes n with so many digits, and commas.
func significant(n float64, digits int) string {
	unit := math.Pow(10, math.Floor(math.Log10(n))-float64(digits-1))
	n = math.Round(n/unit) * unit
	if n < 100 {
		return strconv.FormatFloat(n, 'f', max(0, -int(math.Round(math.Log10(unit)))), 64)
	}
	text := strconv.FormatFloat(n, 'f', 0, 64)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
