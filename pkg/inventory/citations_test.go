package inventory_test

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
)

var (
	// webAddress is a page of somebody else's, which may well be called guide.md.
	webAddress = regexp.MustCompile(`https?://[^\s)>"']+`)
	// citation is a document and what of it is meant: CONTRACT.md 4.1, SPEC.md 12, rows 7 and 8. A linked one ends in a parenthesis.
	citation = regexp.MustCompile(
		`([A-Za-z0-9_./-]*[A-Za-z0-9_-]+\.md)\b\)?(?:,? +(\d+(?:\.\d+)*)(?:, +rows? +(\d+(?:(?:, +| +and +)\d+)*))?)?`,
	)
	// numbered is a section of a document of ours whose name is missing, or is not that of a file.
	numbered = regexp.MustCompile(
		`(?i)\b(?:contract|architecture|specification|spec|design|payments)(?:'s)? +(?:section +)?\d+(?:\.\d+)*\b`,
	)
	// section is one of an unnamed document. What stands before it tells whether it is one of the world's.
	section = regexp.MustCompile(`(?i)(\S+ +\S+ +)?\b(?:section|chapter)s? +\d[\d.]*`)
	// bare is a section in parentheses and no document: (2.10, 7).
	bare = regexp.MustCompile(`\((\d\.\d{1,2})(?:, +\d+)?[;)]`)
	// elsewhere are words of documents, places and notes that whoever has this repository has not.
	elsewhere = regexp.MustCompile(
		`(?i)\bthe +specification\b|\b(?:the )?spec +says\b|\bspec: +not +shown|\.\./(?:shared|spec|design)/|/work/|\bissues show\b`,
	)
	// finding is the number of a remark in a list that is not here.
	finding = regexp.MustCompile(`\b[EFHM][1-9]\d?\b`)
	// row begins one of a table whose rows are numbered.
	row = regexp.MustCompile(`(?m)^\| *(\d+) *\|`)
	// numberedHeading is that of a section.
	numberedHeading = regexp.MustCompile(`(?m)^#+ (\d+(?:\.\d+)*)\.? .*$`)
)

// prose are the kinds of files that people write sentences in.
var prose = []string{".go", ".md", ".sql", ".yml", ".yaml", ".lua", ".html", ".js", ".css", ".sh", ".env"}

// vendored are files of others, and licences, that stand in the tree.
var vendored = regexp.MustCompile(`(?:^|/)(?:LICENSE|.*\.LICENSE\.txt|htmx\.js|uplot\.(?:js|css))$`)

// TestCitationsLeadSomewhere: a comment or document that refers the reader to a document names a file of this repository, and a
// section and row that are there. What is said for a reason that only somebody else's notes give is not said.
func TestCitationsLeadSomewhere(t *testing.T) {
	t.Parallel()
	root := hubtest.Root(t)
	all := files(t, root)
	library := newLibrary(t, all)
	cited := 0
	for _, name := range all {
		text := sentences(name, read(t, name))
		said := blank(text.flowing, webAddress)
		for _, m := range citation.FindAllStringSubmatchIndex(said, -1) {
			part := func(n int) string {
				if m[2*n] < 0 {
					return ""
				}
				return said[m[2*n]:m[2*n+1]]
			}
			cited++
			if err := library.find(name, part(1), part(2), part(3)); err != nil {
				t.Errorf("%s:%d: %v", name, text.line(m[0]), err)
			}
		}
		for _, wrong := range library.unnamed(name, blank(said, citation)) {
			t.Errorf("%s:%d: %q is of a document that is not here, or not named: cite a file and its section, or give the reason",
				name, text.line(wrong[0]), said[wrong[0]:wrong[1]])
		}
	}
	if len(all) < 1000 || cited < 150 {
		t.Errorf("%d files with %d citations", len(all), cited)
	}
	t.Logf("%d files with %d citations", len(all), cited)
}

// TestCitationsThatLeadNowhereAreFound tries each rule on what it is for, and on what only looks like it.
func TestCitationsThatLeadNowhereAreFound(t *testing.T) {
	t.Parallel()
	library := newLibrary(t, files(t, hubtest.Root(t)))
	const here = "services/gateway/gateway.go"
	for cited, good := range map[[3]string]bool{
		{"CONTRACT.md", "4.1", ""}: true, {"SPEC.md", "12", "6"}: true, {"SPEC.md", "12", "7 and 8"}: true, {"payments/SPEC.md", "9.4", ""}: true,
		{"../../README.md", "", ""}: true, {"deploy/README.md", "", ""}: true, {"write-store.md", "", ""}: true,
		{"CONTRACT.md", "4.99", ""}: false, {"SPEC.md", "12", "99"}: false, {"SPEC.md", "4.1", "1"}: false, {"security.md", "", ""}: false,
		{"../README.md", "", ""}: false, {"README.md", "2", ""}: false,
	} {
		if err := library.find(here, cited[0], cited[1], cited[2]); (err == nil) != good {
			t.Errorf("%q: %v", cited, err)
		}
	}
	for comment, good := range map[string]bool{
		"scopes (contract 1.10)": false, "architecture 4.3 has it": false, "as payments 2.13 says": false, "the contract's 1.2": false,
		"once (2.10, 7)": false, "as the\n// specification has it": false, "see ../shared/x": false, "(section 6, 12)": false, "mends F12": false,
		"security, section\n// 2": false,
		"payments, 3 of them":     true, "half of it, 0.5": true, "takes 2.5 (of 4)": true, "E_DB and SHA256": true, "RFC 9728 section 3": true,
		"sections of a page": true, "version 1.2 of it": true,
	} {
		text := sentences(here, "// "+comment+"\npackage gateway\n\nconst f12 = \"contract 1.10\"\n")
		if found := library.unnamed(here, text.flowing); (len(found) == 0) != good {
			t.Errorf("%q: %v", comment, found)
		}
	}
}

// library is what can be cited: documents by their names, and the numbered sections that they have, with their own text.
type library struct {
	documents []string
	sections  map[string]map[string]string
}

func newLibrary(t *testing.T, all []string) library {
	t.Helper()
	l := library{sections: map[string]map[string]string{}}
	for _, name := range all {
		if filepath.Ext(name) != ".md" {
			continue
		}
		l.documents = append(l.documents, name)
		text, sections := read(t, name), map[string]string{}
		headings := numberedHeading.FindAllStringSubmatchIndex(text, -1)
		for i, h := range headings {
			end := len(text)
			if i+1 < len(headings) {
				end = headings[i+1][0]
			}
			sections[text[h[2]:h[3]]] = text[h[1]:end]
		}
		l.sections[name] = sections
	}
	return l
}

// unnamed are the places of a file's text where it cites what has no name, or is not here.
func (l library) unnamed(name, text string) (found [][]int) {
	rules := []*regexp.Regexp{numbered, elsewhere}
	if kind := filepath.Ext(name); kind == ".go" || kind == ".md" || kind == ".sql" || kind == ".lua" || kind == ".yml" {
		rules = append(rules, finding)
	}
	for _, rule := range rules {
		found = append(found, rule.FindAllStringIndex(text, -1)...)
	}
	for _, m := range bare.FindAllStringSubmatchIndex(text, -1) {
		if _, own := l.sections[name][text[m[2]:m[3]]]; !own {
			found = append(found, m[:2])
		}
	}
	for _, m := range section.FindAllStringIndex(text, -1) {
		if !strings.Contains(text[m[0]:m[1]], "RFC") {
			found = append(found, m)
		}
	}
	return found
}

// find tells what is wrong with a citation in a file.
func (l library) find(from, document, number, rows string) error {
	found := []string{filepath.Join(filepath.Dir(from), document)}
	if !slices.Contains(l.documents, found[0]) {
		found = slices.DeleteFunc(slices.Clone(l.documents), func(name string) bool {
			return name != document && !strings.HasSuffix(name, "/"+document)
		})
	}
	switch {
	case len(found) == 0:
		return fmt.Errorf("there is no %s", document)
	case number == "":
		return nil
	case len(found) > 1:
		return fmt.Errorf("%s may be any of %v", document, found)
	}
	text, ok := l.sections[found[0]][number]
	if !ok {
		return fmt.Errorf("%s has no section %s", found[0], number)
	}
	has := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		has[m[1]] = true
	}
	for _, n := range regexp.MustCompile(`\d+`).FindAllString(rows, -1) {
		if !has[n] {
			return fmt.Errorf("section %s of %s has no row %s", number, found[0], n)
		}
	}
	return nil
}

// files lists what of the repository people write sentences in, from its root.
func files(t *testing.T, root string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, d os.DirEntry, err error) error {
		name, relErr := filepath.Rel(root, file)
		switch {
		case err != nil || relErr != nil:
			return fmt.Errorf("%w %w", err, relErr)
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "bin" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") &&
			file != root):
			return fs.SkipDir
		case d.IsDir() || vendored.MatchString(name) || name == "pkg/inventory/citations_test.go":
			return nil
		case slices.Contains(prose, filepath.Ext(name)) || d.Name() == "Makefile" || d.Name() == "Dockerfile":
			names = append(names, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// said is the text of a file in which sentences go on over the ends of lines, and the lines that they stand in.
type said struct {
	flowing string
	ends    []int // of the lines, in flowing
	numbers []int // of the lines, in the file
}

func (s said) line(offset int) int {
	i, _ := slices.BinarySearch(s.ends, offset+1)
	return s.numbers[i]
}

// sentences are those of a file: all of it, or of a program its comments.
func sentences(name, text string) (s said) {
	var b strings.Builder
	add := func(number int, line string) {
		line = strings.TrimLeft(line, " \t")
		for _, mark := range []string{"//", "--", "#"} {
			line = strings.TrimPrefix(line, mark)
		}
		b.WriteString(strings.TrimLeft(line, " \t") + " ")
		s.ends, s.numbers = append(s.ends, b.Len()), append(s.numbers, number)
	}
	if filepath.Ext(name) != ".go" {
		for i, line := range strings.Split(text, "\n") {
			add(i+1, line)
		}
		s.flowing = b.String()
		return s
	}
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(text))
	var reader scanner.Scanner
	reader.Init(file, []byte(text), nil, scanner.ScanComments)
	last := 0
	for {
		pos, tok, literal := reader.Scan()
		if tok == token.EOF {
			s.flowing = b.String()
			return s
		}
		if tok != token.COMMENT {
			continue
		}
		for i, line := range strings.Split(literal, "\n") {
			number := file.Line(pos) + i
			if number > last+1 {
				add(last, "¶") // no sentence goes on behind code
			}
			add(number, line)
			last = number
		}
	}
}

// blank has spaces in place of what a rule finds.
func blank(text string, rule *regexp.Regexp) string {
	return rule.ReplaceAllStringFunc(text, func(found string) string { return strings.Repeat(" ", len(found)) })
}
