// Package changes tells what is different between two versions of a page, line by line, as their texts and figures
// read: markup that only looks different is no change.
package changes

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"golang.org/x/net/html"

	"hub.internal/pkg/jsontree"
	"hub.internal/pkg/text"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/admin"
)

const (
	// around is how many lines are shown beside what has changed, most how many lines in all.
	around, most = 2, 500
	// longest is how many characters of a line are shown.
	longest = 300
)

// Line is one that went, came, or stands beside these.
type Line struct {
	// Kind is "removed", "added", "same", or "gap" for lines that are left out.
	Kind, Text string
}

// Between lists what has to be done to a version to make it the other one; nothing when they read alike.
func Between(ctx context.Context, before, after admin.Page) (lines []Line, more bool) {
	// A unified diff (Myers) of the two texts, with a few lines of context.
	old := linesOf(ctx, before)
	diff, err := udiff.ToUnifiedDiff("", "", old, udiff.Lines(old, linesOf(ctx, after)), around)
	if err != nil {
		return []Line{{"gap", i18n.T(ctx, "The versions could not be compared.")}}, false
	}
	kinds := map[udiff.OpKind]string{udiff.Delete: "removed", udiff.Insert: "added", udiff.Equal: "same"}
	for n, hunk := range diff.Hunks {
		if n > 0 || hunk.FromLine > 1 {
			lines = append(lines, Line{Kind: "gap"})
		}
		for _, l := range hunk.Lines {
			// A page that was rewritten as a whole has nothing to compare.
			if len(lines) >= most {
				return lines, true
			}
			lines = append(lines, Line{kinds[l.Kind], text.Shorten(strings.TrimSuffix(l.Content, "\n"), longest)})
		}
	}
	return lines, false
}

// linesOf is a version with a line for each thing that it says.
func linesOf(ctx context.Context, p admin.Page) string {
	var b strings.Builder
	put := func(parts ...string) {
		b.WriteString(text.OneLine(strings.Join(parts, " ")) + "\n")
	}
	put(i18n.T(ctx, "Title:"), p.Title)
	if p.Description != nil {
		put(i18n.T(ctx, "Description:"), *p.Description)
	}
	for _, s := range p.Sections {
		title := ""
		if s.Title != nil {
			title = *s.Title
		}
		put(i18n.T(ctx, "Section %s (%s)", title, s.Type))
		switch s.Type {
		case admin.Text:
			if s.Body != nil {
				for line := range strings.SplitSeq(plain(*s.Body), "\n") {
					if strings.TrimSpace(line) != "" {
						put(line)
					}
				}
			}
		case admin.Stats:
			for _, c := range s.Cards {
				put(c.Label+":", value(c.Value), text.OrEmpty(c.Unit), value(c.Delta), text.OrEmpty(c.Hint))
			}
		case admin.Table:
			labels := make([]string, len(s.Columns))
			for n, c := range s.Columns {
				labels[n] = c.Label
				if c.Align != nil {
					labels[n] += " (" + *c.Align + ")"
				}
				if c.Format != nil {
					labels[n] += " (" + *c.Format + ")"
				}
			}
			put(strings.Join(labels, " | "))
			for _, raw := range s.Rows {
				put(row(raw))
			}
		case admin.Bar, admin.Line:
			for n, label := range s.Labels {
				put(label+":", point(s.Series, n), text.OrEmpty(s.Unit))
			}
		case admin.Progress:
			for _, g := range s.Items {
				put(g.Label+":", value(g.Value), "/", value(g.Max), text.OrEmpty(s.Unit))
			}
		}
		if s.Caption != nil {
			put(*s.Caption)
		}
	}
	return b.String()
}

// point is what the series of a chart have at a label.
func point(series []admin.Series, n int) string {
	parts := make([]string, 0, len(series))
	for _, s := range series {
		if n < len(s.Values) {
			parts = append(parts, s.Name+" "+value(s.Values[n]))
		}
	}
	return strings.Join(parts, " | ")
}

// row is a row with all its members, those that no column shows too: they are in the version.
func row(raw json.RawMessage) string {
	members, err := jsontree.Members(raw)
	if err != nil {
		return string(raw)
	}
	parts := make([]string, len(members))
	for i, m := range members {
		parts[i] = m.Name + " " + value(m.Value)
	}
	return strings.Join(parts, " | ")
}

// value is a text as it reads, and any other value as it is written.
func value(raw json.RawMessage) string {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// ends are the elements that end a line.
var ends = regexp.MustCompile(`^(?:p|div|br|hr|li|tr|dt|dd|h[1-6]|blockquote|pre|table|ul|ol|dl)$`)

// plain is the text of HTML that was cleaned, a line for each block, with where its links lead.
func plain(body string) string {
	var b strings.Builder
	tokens := html.NewTokenizer(strings.NewReader(body))
	for {
		switch kind := tokens.Next(); kind {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
			b.WriteString(strings.ReplaceAll(tokens.Token().Data, "\n", " "))
		case html.StartTagToken, html.EndTagToken:
			token := tokens.Token()
			switch {
			case ends.MatchString(token.Data):
				b.WriteByte('\n')
			case token.Data == "td" || token.Data == "th":
				b.WriteString(" | ")
			}
			for _, a := range token.Attr {
				if a.Key == "href" {
					b.WriteString("[" + a.Val + "] ")
				}
			}
		}
	}
}
