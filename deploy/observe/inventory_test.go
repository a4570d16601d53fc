package observe_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// metric is what a query may ask of a name: its labels, with their values; "*" stands for any text there.
type metric map[string][]string

// inventory are the names that there are.
type inventory map[string]metric

// targetLabels are what Prometheus adds, as prometheus.yml says.
var targetLabels = metric{"job": {"hub"}, "instance": {"*"},
	"service": {"admin", "auth", "authoring", "gateway", "payments", "query", "review-control"}}

var language = parser.NewParser(parser.Options{})

// load reads metrics.json, and what the rules record.
func load(t testing.TB) inventory {
	t.Helper()
	b, err := os.ReadFile("metrics.json")
	if err != nil {
		t.Fatal(err)
	}
	var listed map[string]struct {
		Type   string
		Labels metric
	}
	if err := json.Unmarshal(b, &listed); err != nil {
		t.Fatal(err)
	}
	found := inventory{"up": {}, "ALERTS": {"alertname": {"*"}, "alertstate": {"firing", "pending"}, "severity": {"page", "ticket", "none"}}}
	for name, m := range listed {
		plain := maps.Clone(m.Labels)
		delete(plain, "le")
		switch m.Type {
		case "histogram":
			found[name+"_bucket"], found[name+"_count"], found[name+"_sum"] = m.Labels, plain, plain
			if len(m.Labels) == 0 {
				found[name+"_bucket"] = metric{"le": {"*"}}
			}
		default:
			found[name] = plain
		}
	}
	for name := range found {
		with := maps.Clone(targetLabels)
		maps.Copy(with, found[name])
		found[name] = with
	}
	for _, g := range rules(t) {
		for _, r := range g.Rules {
			if r.Record == "" {
				continue
			}
			found[r.Record] = metric{}
			expr, err := language.ParseExpr(r.Expr)
			if err != nil {
				t.Fatalf("%s: %v", r.Record, err)
			}
			if sum, ok := expr.(*parser.AggregateExpr); ok {
				for _, label := range sum.Grouping {
					found[r.Record][label] = []string{"*"}
				}
			}
		}
	}
	return found
}

// rules are the groups of all files; each file is read as Prometheus reads it.
func rules(t testing.TB) (groups []rulefmt.RuleGroup) {
	t.Helper()
	files, err := filepath.Glob("../prometheus/rules/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	for _, file := range files {
		read, errs := rulefmt.ParseFile(file, false, model.LegacyValidation, language, slog.New(slog.DiscardHandler))
		for _, err := range errs {
			t.Error(err)
		}
		if read != nil {
			groups = append(groups, read.Groups...)
		}
	}
	return groups
}

// wrong is what a query names that is not there: metrics, labels, and values of them.
func (i inventory) wrong(query string) (list []string) {
	expr, err := language.ParseExpr(query)
	if err != nil {
		return []string{err.Error()}
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			list = append(list, i.wrongSelector(n)...)
		case *parser.AggregateExpr:
			list = append(list, i.missing(n.Expr, n.Grouping)...)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				list = append(list, i.missing(n, append(slices.Clone(n.VectorMatching.MatchingLabels), n.VectorMatching.Include...))...)
			}
		}
		return nil
	})
	return list
}

func (i inventory) wrongSelector(s *parser.VectorSelector) (list []string) {
	m, exists := i[s.Name]
	if !exists {
		return []string{fmt.Sprintf("there is no metric %q", s.Name)}
	}
	for _, matcher := range s.LabelMatchers {
		if matcher.Name == model.MetricNameLabel {
			continue
		}
		values, has := m[matcher.Name]
		switch {
		case !has:
			list = append(list, fmt.Sprintf("%s has no label %q", s.Name, matcher.Name))
		case slices.Contains(values, "*"), strings.Contains(matcher.Value, variable):
		case matcher.Type == labels.MatchEqual && !slices.Contains(values, matcher.Value):
			list = append(list, fmt.Sprintf("%s has no %s %q", s.Name, matcher.Name, matcher.Value))
		case matcher.Type == labels.MatchRegexp:
			// Each alternative has to be of use.
			for _, part := range strings.Split(matcher.Value, "|") {
				one, err := labels.NewMatcher(labels.MatchRegexp, matcher.Name, part)
				if err != nil || !slices.ContainsFunc(values, one.Matches) {
					list = append(list, fmt.Sprintf("%s has no %s like %q", s.Name, matcher.Name, part))
				}
			}
		}
	}
	return list
}

// missing are those of the labels that nothing below an expression has.
func (i inventory) missing(below parser.Node, wanted []string) (list []string) {
	has := map[string]bool{}
	parser.Inspect(below, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			for label := range i[s.Name] {
				has[label] = true
			}
		}
		return nil
	})
	for _, label := range wanted {
		if !has[label] {
			list = append(list, fmt.Sprintf("nothing in %s has a label %q", below, label))
		}
	}
	return list
}

// variable stands for one of a dashboard's that chooses values of a label.
const variable = "VARIABLE"

var (
	duration = regexp.MustCompile(`\$__(rate_interval|interval|range)\b`)
	chosen   = regexp.MustCompile(`\$\{?\w+\}?`)
	values   = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
)

// plain is a query of a dashboard without its variables.
func plain(query string) string {
	return chosen.ReplaceAllString(duration.ReplaceAllString(query, "5m"), variable)
}

// wrongInDashboard holds every query of a dashboard to the inventory: of panels, annotations and variables.
func (i inventory) wrongInDashboard(content []byte) (list []string) {
	var d any
	if err := json.Unmarshal(content, &d); err != nil {
		return []string{err.Error()}
	}
	queries := 0
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, member := range []string{"expr", "query"} {
				if text, ok := v[member].(string); ok {
					queries++
					list = append(list, i.wrongInPanel(text)...)
				}
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(d)
	if queries == 0 {
		list = append(list, "there are no queries")
	}
	return list
}

func (i inventory) wrongInPanel(query string) []string {
	if m := values.FindStringSubmatch(query); m != nil {
		return i.wrong(fmt.Sprintf("count by (%s) (%s)", m[2], plain(m[1])))
	}
	return i.wrong(plain(query))
}
