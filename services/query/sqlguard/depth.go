package sqlguard

// maxDepth bounds how deep expressions and queries nest. Servers evaluate them by
// recursion, and not each function looks whether there is stack left: on MariaDB
// 10.11.19, with its default thread_stack, 90 JSON_SEARCH() in each other are too many.
const maxDepth = 50

// separators end an operand: what follows them is beside it, not around it.
var separators = wordSet(`, AND OR SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT WINDOW ON USING JOIN UNION EXCEPT INTERSECT
	WHEN THEN ELSE AS VALUES`)

// operators take an operand into one that is deeper by one.
var operators = wordSet(`+ - * / % & | ^ ! ~ = < > DIV MOD NOT XOR IS LIKE RLIKE REGEXP BETWEEN IN BINARY COLLATE INTERVAL SOUNDS
	MEMBER`)

// checkDepth refuses a statement that nests deeper than maxDepth. It adds up, level by
// level, what a parenthesis or a CASE holds and the operators beside it, as if each
// operator took all before it: no expression is deeper than that.
func (t tokens) checkDepth() error {
	type level struct{ operand, deepest int }
	levels := []level{{}}
	for i := range t {
		here := &levels[len(levels)-1]
		switch key := t[i].key; {
		case key == "(" || key == "CASE":
			levels = append(levels, level{})
		case (key == ")" || key == "END") && len(levels) > 1:
			inner := max(here.operand, here.deepest) + t.weight(i)
			levels = levels[:len(levels)-1]
			here = &levels[len(levels)-1]
			here.operand = max(here.operand, inner)
		case separators[key]:
			here.deepest = max(here.deepest, here.operand)
			here.operand = 0
		case operators[key]:
			here.operand++
		}
		if len(levels) > maxDepth || levels[len(levels)-1].operand > maxDepth {
			return refuse("sql.depth", "the statement nests deeper than %d, which crashes servers: split it with "+
				"WITH, or use fewer operators in a row", maxDepth)
		}
	}
	return nil
}

// weight is how many levels the parenthesis or CASE that ends at i counts for. MariaDB
// computes an argument of NULLIF and LOCATE twice, and thus one that is fifty levels down
// longer than any limit, and KILL does not end that.
func (t tokens) weight(i int) int {
	if t[i].key == ")" {
		switch t.key(t[i].mate - 1) {
		case "NULLIF", "LOCATE":
			return 8
		}
	}
	return 1
}
