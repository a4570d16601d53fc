package inventory_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"hub.internal/pkg/hubtest"
)

var (
	// code is what a document shows to be typed or looked up: a fenced block, an indented line, a span.
	code = regexp.MustCompile("(?s)```.*?```|(?m-s:^    .*$)|`[^`\n]+`")
	// target is one of make's, after its name alone or with settings.
	target = regexp.MustCompile(`(?:^|[\s;(&|'"` + "`" + `])make ([a-z][a-z-]*)`)
	// program is a package that go is told to run, build or test.
	program = regexp.MustCompile(`\bgo (?:run|build|test|vet)\b[^\n;|&#` + "`" + `]*?\s(\./[\w./-]+)`)
	built   = regexp.MustCompile(`(?:^|[\s;(&|'"` + "`" + `])bin/([a-z-]+)\b`)
	// path is a file or folder, named from the root.
	path = regexp.MustCompile(`(?:^|[\s('"` + "`" + `=])((?:deploy|k8s|scripts|services|pkg)/[\w.-]+(?:/[\w.-]+)*)`)
)

// TestDocumentsNameWhatThereIs: each target of make, program, file and folder that a document tells a person to use is there.
func TestDocumentsNameWhatThereIs(t *testing.T) {
	root := hubtest.Root(t)
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z-]*):`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	exists := func(path ...string) bool {
		_, err := os.Stat(filepath.Join(append([]string{root}, path...)...))
		return err == nil
	}
	builds := func(name string) bool {
		for _, pattern := range []string{"services/*/cmd/" + name, "scripts/" + name} {
			if found, err := filepath.Glob(filepath.Join(root, pattern)); err == nil && len(found) > 0 {
				return true
			}
		}
		return name == "release" || name == "image" // folders there
	}
	commands := 0
	all := documents(t)
	for name, text := range all {
		dir := filepath.Dir(name)
		for _, shown := range code.FindAllString(text, -1) {
			for _, m := range target.FindAllStringSubmatch(shown, -1) {
				if commands++; !targets[m[1]] {
					t.Errorf("%s: there is no target %q of make: %s", name, m[1], shown)
				}
			}
			for _, m := range built.FindAllStringSubmatch(shown, -1) {
				if commands++; !builds(m[1]) {
					t.Errorf("%s: nothing builds bin/%s: %s", name, m[1], shown)
				}
			}
			for _, m := range program.FindAllStringSubmatch(shown, -1) {
				if at := strings.TrimSuffix(m[1], "/..."); !exists(at) && !exists(dir, at) {
					t.Errorf("%s: there is no package %s: %s", name, m[1], shown)
				}
				commands++
			}
			for _, m := range path.FindAllStringSubmatch(shown, -1) {
				at := strings.TrimRight(m[1], ".")
				if strings.Contains(at, "NAME") || strings.HasSuffix(at, "/v1.2.3") ||
					strings.Contains(shown, "kubectl") && strings.Count(at, "/") == 1 {
					continue // of any; a tag; what a cluster has
				}
				if commands++; !exists(at) && !exists(dir, at) {
					t.Errorf("%s: there is no %s: %s", name, at, shown)
				}
			}
		}
	}
	if len(all) < 30 || commands < 100 {
		t.Errorf("%d documents with %d commands", len(all), commands)
	}
	t.Logf("%d documents with %d commands", len(all), commands)
}

// documents are the texts of the repository by their path from the root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	root, texts := hubtest.Root(t), map[string]string{}
	err := filepath.WalkDir(root, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && (d.Name() == "node_modules" || d.Name() == "bin" || strings.HasPrefix(d.Name(), ".") && file != root) {
				return filepath.SkipDir
			}
			return err
		}
		if filepath.Ext(file) != ".md" || d.Name() == "CHANGELOG.md" { // what a release has changed may be gone
			return nil
		}
		name, err := filepath.Rel(root, file)
		if err == nil {
			texts[name] = read(t, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

var (
	fenced = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	// link is a text that leads somewhere, and where to.
	link = regexp.MustCompile(`\[([^\]\[]*)\]\(([^)\s]+)\)`)
	// heading is what an anchor leads to.
	heading = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	// named is a link's text, or one of several with commas between them, that is a name of the code, with the package or type
	// that it belongs to.
	named = regexp.MustCompile("^`?(?:[A-Za-z]\\w*\\.)*([A-Za-z]\\w*)`?$")
)

// anchors are those that GitHub makes of a document's headings.
func anchors(text string) map[string]bool {
	made := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		plain := regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		made[strings.ReplaceAll(plain, " ", "-")] = true
	}
	return made
}

// TestDocumentsLeadSomewhere: each link's file is there, with its heading, and one to a file of Go that is named as a function or
// type leads to a file that has this name.
func TestDocumentsLeadSomewhere(t *testing.T) {
	t.Parallel()
	texts, links, names := documents(t), 0, 0
	for name, text := range texts {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			file, anchor, _ := strings.Cut(m[2], "#")
			if strings.Contains(m[2], "://") {
				continue
			}
			links++
			to := name
			if file != "" {
				to = filepath.Join(filepath.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(hubtest.Root(t), to)); err != nil {
				t.Errorf("%s: there is no %s: %s", name, to, m[0])
				continue
			}
			if anchor != "" && !anchors(texts[to])[anchor] {
				t.Errorf("%s: %s has no heading #%s", name, to, anchor)
			}
			for said := range strings.SplitSeq(m[1], ", ") {
				if what := named.FindStringSubmatch(said); what != nil && filepath.Ext(to) == ".go" && what[1] != "go" {
					names++
					if !regexp.MustCompile(`\b` + what[1] + `\b`).MatchString(read(t, to)) {
						t.Errorf("%s: %s does not have %s", name, to, said)
					}
				}
			}
		}
	}
	t.Logf("%d links, %d of them to names of the code", links, names)
	if links < 100 || names < 50 {
		t.Errorf("%d links, %d of them to names of the code", links, names)
	}
}

// columns is how wide a document's line may be, but for tables, code and addresses, and screen how long a service's README.
const (
	columns = 120
	screen  = 60
)

// TestDocumentsFitTheScreen: lines that can be read in a terminal, and a service that is told on one screen.
func TestDocumentsFitTheScreen(t *testing.T) {
	t.Parallel()
	for name, text := range documents(t) {
		if lines := strings.Count(text, "\n"); lines > screen && regexp.MustCompile(`^services/[^/]+/README\.md$`).MatchString(name) {
			t.Errorf("%s has %d lines: a README has %d, settings are told in OPERATING.md, how it works in DESIGN.md", name, lines, screen)
		}
		if strings.HasPrefix(name, "scripts/bench/") { // written by a program
			continue
		}
		for line := range strings.Lines(fenced.ReplaceAllString(text, "")) {
			line = strings.TrimRight(line, "\n")
			shown := strings.HasPrefix(line, "    ") || strings.HasPrefix(strings.TrimLeft(line, " "), "|")
			if !shown && !strings.Contains(line, "](") && !strings.Contains(line, "://") && utf8.RuneCountInString(line) > columns {
				t.Errorf("%s has a line of %d columns: %s", name, utf8.RuneCountInString(line), line)
			}
		}
	}
}
