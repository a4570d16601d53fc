package observe_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func files(t *testing.T, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(pattern)
	if err != nil || len(list) == 0 {
		t.Fatalf("%s: none, %v", pattern, err)
	}
	return list
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDashboardsNameWhatThereIs: every query of every dashboard is one, of metrics, labels and values that running programs have.
func TestDashboardsNameWhatThereIs(t *testing.T) {
	there := load(t)
	uids := map[string]bool{}
	for _, file := range files(t, "../grafana/dashboards/*.json") {
		content := read(t, file)
		for _, wrong := range there.wrongInDashboard([]byte(content)) {
			t.Errorf("%s: %s", file, wrong)
		}
		var d struct {
			UID, Title string
			Panels     []struct {
				ID      int
				GridPos struct{ X, Y, W, H int }
			}
		}
		if err := json.Unmarshal([]byte(content), &d); err != nil || d.UID == "" || d.Title == "" || uids[d.UID] {
			t.Errorf("%s: uid %q, title %q, %v", file, d.UID, d.Title, err)
		}
		uids[d.UID] = true
		for i, p := range d.Panels {
			for _, q := range d.Panels[:i] {
				a, b := p.GridPos, q.GridPos
				if p.ID == q.ID || a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
					t.Errorf("%s: panel %d is over panel %d", file, p.ID, q.ID)
				}
			}
		}
	}
}

// TestWhatIsNotThereIsFound: a dashboard or an alert that names what no program shows fails the build.
func TestWhatIsNotThereIsFound(t *testing.T) {
	there := load(t)
	for query, want := range map[string]string{
		`sum(rate(hub_no_such_thing_total[5m]))`: `there is no metric "hub_no_such_thing_total"`,
		`hub_jobs_lag_seconds{line="mail"}`:      `hub_jobs_lag_seconds has no label "line"`,
		`hub_jobs_lag_seconds{queue="webhok"}`:   `hub_jobs_lag_seconds has no queue "webhok"`,
		`hub_jobs_lag_seconds{queue=~"mail|webhok"}`: `hub_jobs_lag_seconds has ` +
			`no queue like "webhok"`,
		`sum by (queue) (hub_jobs_leader)`:          `nothing in hub_jobs_leader has a label "queue"`,
		`hub_jobs_due / on (queue) hub_jobs_leader`: ``,
		`hub_jobs_leader / on (queue) hub_claims_open`: `nothing in hub_jobs_leader / on (queue) ` +
			`hub_claims_open has a label "queue"`,
		`sum(rate(hub_call_duration_seconds_bucket{le="0.4"}[5m]))`: `hub_call_duration_seconds_bucket has no le "0.4"`,
		`sum(rate(hub_call_duration_seconds_count{le="0.5"}[5m]))`:  `hub_call_duration_seconds_count has no label "le"`,
		`sum(rate(hub_call_duration_seconds_count{outcome="E_OTHER",service="gateway"}[5m]))`: `hub_call_duration_seconds_count has ` +
			`no outcome "E_OTHER"`,
		`hub:edge_errors:ratio_rate7m`: `there is no metric ` +
			`"hub:edge_errors:ratio_rate7m"`,
		`sum(rate(hub_call_duration_seconds_count[5m])`:                                         `1:46: parse error: unclosed left parenthesis`,
		`sum by (service) (rate(hub_call_duration_seconds_count{service="gateway"}[$__range]))`: ``,
	} {
		if got := there.wrongInPanel(query); want == "" && len(got) > 0 || want != "" && !slices.Contains(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	content := read(t, "../grafana/dashboards/edge.json")
	if got := there.wrongInDashboard(
		[]byte(strings.Replace(content, "hub_ratelimit_local", "hub_ratelimit_lokal", 1)),
	); !slices.Contains(
		got,
		`there is no metric "hub_ratelimit_lokal"`,
	) {
		t.Errorf("a dashboard's metric that is not there is not found: %v", got)
	}
	if got := there.wrongInDashboard(
		[]byte(strings.Replace(content, "label_values(up{", "label_values(down{", 1)),
	); !slices.Contains(
		got,
		`there is no metric "down"`,
	) {
		t.Errorf("a variable's metric that is not there is not found: %v", got)
	}
}

// TestAlertsLeadToRunbooks: an alert names metrics that there are, says how much it matters, and has a page that says what to do.
func TestAlertsLeadToRunbooks(t *testing.T) {
	there := load(t)
	pages := map[string]string{}
	for _, file := range files(t, "../runbooks/*.md") {
		pages["deploy/runbooks/"+filepath.Base(file)] = read(t, file)
	}
	delete(pages, "deploy/runbooks/README.md")
	named := map[string]bool{}
	for _, g := range rules(t) {
		for _, r := range g.Rules {
			for _, wrong := range there.wrong(r.Expr) {
				t.Errorf("%s%s: %s", r.Alert, r.Record, wrong)
			}
			if r.Alert == "" {
				continue
			}
			page := pages[r.Annotations["runbook_url"]]
			if !strings.Contains(page, "`"+r.Alert+"`") {
				t.Errorf("%s: the page %q does not say what it means", r.Alert, r.Annotations["runbook_url"])
			}
			named[r.Annotations["runbook_url"]] = true
			if s := r.Labels["severity"]; s != "page" && s != "ticket" && (s != "none" || r.Alert != "HubWatchdog") {
				t.Errorf("%s: severity %q", r.Alert, s)
			}
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || !strings.HasPrefix(r.Alert, "Hub") {
				t.Errorf("%s: %v", r.Alert, r.Annotations)
			}
		}
	}
	for name := range pages {
		if !named[name] {
			t.Errorf("no alert leads to %s", name)
		}
	}
}

var fence = regexp.MustCompile("(?s)```(\\w+)\n(.*?)```")

// TestRunbooksSayWhatIsThere: a page has its four parts, its queries are of metrics that there are, and its log lines
// are written by some program.
func TestRunbooksSayWhatIsThere(t *testing.T) {
	there := load(t)
	code := source(t)
	for _, file := range files(t, "../runbooks/*.md") {
		page := read(t, file)
		if filepath.Base(file) == "README.md" {
			continue
		}
		at := 0
		for _, part := range []string{"## What it means", "## What to look at", "## What to do", "## Whom to wake"} {
			i := strings.Index(page[at:], part+"\n")
			if i < 0 {
				t.Errorf("%s: no %q, or not in its place", file, part)
				break
			}
			at += i
		}
		queries := 0
		for _, block := range fence.FindAllStringSubmatch(page, -1) {
			for _, line := range strings.Split(strings.TrimSpace(block[2]), "\n") {
				switch block[1] {
				case "promql":
					queries++
					for _, wrong := range there.wrong(line) {
						t.Errorf("%s: %s: %s", file, line, wrong)
					}
				case "log":
					if !strings.Contains(code, line) {
						t.Errorf("%s: no program writes %q", file, line)
					}
				case "sh", "sql":
				default:
					t.Errorf("%s: a block of %q", file, block[1])
				}
			}
		}
		if queries == 0 {
			t.Errorf("%s: no query", file)
		}
	}
}

// source is the text of the programs.
func source(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{"../../pkg", "../../services"} {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				all.WriteString(read(t, path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
