package sqlguard

// withEnd returns the index behind the WITH list at i, -1 if it is none, and marks its
// names and queries:
//
//	WITH [RECURSIVE] name [(columns)] AS (query) [CYCLE columns RESTRICT], ...
func (t tokens) withEnd(i int) int {
	i++
	if t.key(i) == "RECURSIVE" {
		i++
	}
	for {
		if i >= len(t) || t[i].name == "" {
			return -1
		}
		name := i
		if i++; t.key(i) == "(" {
			i = t[i].mate + 1
		}
		if t.key(i) != "AS" || t.key(i+1) != "(" {
			return -1
		}
		t[name].heads, t[i+1].defines = true, t[name].name
		i = t[i+1].mate + 1
		if t.key(i) == "CYCLE" {
			for i++; t.key(i) != "RESTRICT"; i++ {
				if i >= len(t) || t[i].name == "" && t[i].key != "," {
					return -1
				}
			}
			i++
		}
		if t.key(i) != "," {
			return i
		}
		i++
	}
}

// maxUnfolded bounds how many queries the WITH lists of a statement unfold into.
const maxUnfolded = 1000

// checkUnfolded refuses WITH lists that grow beyond bounds: a server reads the query of a
// name again for each time it is referred to, with all that its own names stand for. Of
// twenty names, each twice in the next one, MariaDB makes a million queries: it takes tens
// of gigabytes for them, and neither a time limit nor KILL ends it.
func (t tokens) checkUnfolded() error {
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
		if t[i].defines != "" {
			open = append(open, query{t[i].defines, t[i].mate, 1})
		}
		if len(known) > 0 && t.isTable(i) {
			copies := 0 // of the greatest that is called so
			for _, q := range known {
				if alike(t[i].name, q.name) {
					copies = max(copies, q.copies)
				}
			}
			open[len(open)-1].copies += copies
		}
		if open[len(open)-1].copies > maxUnfolded {
			return refuse("sql.with", "the WITH lists unfold into more than %d queries, which takes all memory of "+
				"some servers: refer to each name less often", maxUnfolded)
		}
	}
	return nil
}

// isTable reports whether the name at i stands where a table may.
func (t tokens) isTable(i int) bool {
	switch t.key(i - 1) {
	case "FROM", "JOIN", "STRAIGHT_JOIN", ",", "(":
		return t[i].name != "" && t.key(i+1) != "."
	}
	return false
}

// checkMutual refuses queries of a WITH RECURSIVE list that refer to one another: one that names a later one. MariaDB up to
// 11.8.9 goes down when such a statement is stopped; MySQL knows none.
func (t tokens) checkMutual() error {
	for i := range t {
		if t[i].key != "WITH" || t.key(i+1) != "RECURSIVE" {
			continue
		}
		end := t.withEnd(i)
		var opens []int // of the queries of this list
		for j := i; j < end; j++ {
			if t[j].key == "(" {
				if t[j].defines != "" {
					opens = append(opens, j)
				}
				j = t[j].mate
			}
		}
		for n, open := range opens {
			for _, later := range opens[n+1:] {
				for j := open + 1; j < t[open].mate; j++ {
					if t.isTable(j) && alike(t[j].name, t[later].defines) {
						return refuse("sql.crash", "queries of WITH RECURSIVE that refer to one another crash some servers: "+
							"let each name only itself and those before it")
					}
				}
			}
		}
	}
	return nil
}
