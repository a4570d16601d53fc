package sqlguard

import "hub.internal/services/query/sqlguard/lexer"

// maxUnfolded bounds how many queries the WITH lists of a statement unfold into.
const maxUnfolded = 1000

// checkUnfolded refuses WITH lists that grow beyond bounds: a server reads the query of a
// name again for each time it is referred to, with all that its own names stand for. Of
// twenty names, each twice in the next one, MariaDB makes a million queries: it takes tens
// of gigabytes for them, and neither a time limit nor KILL ends it.
func checkUnfolded(t lexer.Tokens) error {
	type query struct {
		name   string // of a WITH list; empty for the statement
		end    int
		copies int
	}
	open, known := []query{{end: len(t), copies: 1}}, []query(nil)
	for i := range t {
		if last := open[len(open)-1]; i == last.end {
			open = open[:len(open)-1]
			known = append(known, last)
			open[len(open)-1].copies += last.copies
		}
		if t[i].Defines != "" {
			open = append(open, query{t[i].Defines, t[i].Mate, 1})
		}
		if len(known) > 0 && t.IsTable(i) {
			copies := 0 // of the greatest that is called so
			for _, q := range known {
				if lexer.Alike(t[i].Name, q.name) {
					copies = max(copies, q.copies)
				}
			}
			open[len(open)-1].copies += copies
		}
		if open[len(open)-1].copies > maxUnfolded {
			return lexer.Refuse("sql.with", "the WITH lists unfold into more than %d queries, which takes all memory of "+
				"some servers: refer to each name less often", maxUnfolded)
		}
	}
	return nil
}

// checkMutual refuses queries of a WITH RECURSIVE list that refer to one another: one that names a later one. MariaDB up to
// 11.8.9 goes down when such a statement is stopped; MySQL knows none.
func checkMutual(t lexer.Tokens) error {
	for i := range t {
		if t[i].Key != "WITH" || t.Key(i+1) != "RECURSIVE" {
			continue
		}
		end := t.WithEnd(i)
		var opens []int // of the queries of this list
		for j := i; j < end; j++ {
			if t[j].Key == "(" {
				if t[j].Defines != "" {
					opens = append(opens, j)
				}
				j = t[j].Mate
			}
		}
		for n, open := range opens {
			for _, later := range opens[n+1:] {
				for j := open + 1; j < t[open].Mate; j++ {
					if t.IsTable(j) && lexer.Alike(t[j].Name, t[later].Defines) {
						return lexer.Refuse("sql.crash", "queries of WITH RECURSIVE that refer to one another crash some servers: "+
							"let each name only itself and those before it")
					}
				}
			}
		}
	}
	return nil
}
