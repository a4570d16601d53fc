package notice

import "hub.internal/services/query/sqlguard/lexer"

// joinsAll finds plain tables that are joined without a condition, none in WHERE either, and NATURAL JOIN.
// It is told of SELECT b.name FROM brand b, campaign c, and not of FROM brand b CROSS JOIN settings s. Any WHERE silences
// it, whatever it says: the old way to join is FROM a, b WHERE a.x = b.x.
func joinsAll(t lexer.Tokens, i int) string {
	if t.Key(i) == "NATURAL" && (t.Key(i+1) == "JOIN" || t.Key(i+2) == "JOIN") {
		return "NATURAL JOIN compares all columns that two tables have by one name, such as created_at: write JOIN … USING (column)"
	}
	if t.Key(i) != "FROM" || !t.Selects(i) || t.Find("WITH") { // what a WITH list names may have one row
		return ""
	}
	joins, conditions := 0, 0
	j := i + 1
	for ; j < len(t) && !lexer.EndsFrom[t.Key(j)]; j++ {
		switch t.Key(j) {
		case ",", "JOIN", "STRAIGHT_JOIN":
			if t.Key(j-1) == "CROSS" || t.Key(j-1) == "FULL" {
				return "" // it is said to be meant, or is told of otherwise
			}
			joins++
		case "ON", "USING", "NATURAL":
			conditions++
		case "(":
			if t.IsQuery(j) || t.Key(j-1) != "USING" && t.Key(j-1) != "ON" && !compares(t, j-1) {
				return "" // a derived table may have one row
			}
			j = t[j].Mate
		}
	}
	if joins <= conditions || t.Key(j) == "WHERE" {
		return ""
	}
	return "tables are joined without a condition: each row of one with each of the other; write JOIN … ON, or CROSS JOIN where it is meant"
}

// joinsItself finds ON with a column alone, or with a column that is compared with itself.
// It is told of JOIN campaign c ON c.brand_id, and of ON c.brand_id = c.brand_id. Only columns with their table in front
// are read: without it, the two sides of x = x may be columns of two tables.
func joinsItself(t lexer.Tokens, i int) string {
	if t.Key(i) != "ON" || t.Key(i+2) != "." || i+3 >= len(t) || t.Name(i+3) == "" {
		return ""
	}
	switch next := t.Key(i + 4); {
	case next == "" || lexer.EndsFrom[next] || lexer.IsOneOf(next, "JOIN|LEFT|RIGHT|INNER|CROSS|,"):
		return "ON names a column alone, which is true wherever it is not 0: write ON a.x = b.x"
	case next == "=" && t.Key(i+6) == "." && t.Name(i+1) == t.Name(i+5) && t.Name(i+3) == t.Name(i+7):
		return "ON compares a column with itself, which is true for each row: write ON a.x = b.x"
	}
	return ""
}
