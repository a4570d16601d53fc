package sqlguard

import "hub.internal/services/query/sqlguard/lexer"

// maxDepth bounds how deep expressions and queries nest. Servers evaluate them by
// recursion, and not each function looks whether there is stack left: on MariaDB
// 10.11.19, with its default thread_stack, 90 JSON_SEARCH() in each other are too many.
const maxDepth = 50

// separators end an operand: what follows them is beside it, not around it.
var separators = lexer.WordSet(`, AND OR SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT WINDOW ON USING JOIN UNION EXCEPT INTERSECT
	WHEN THEN ELSE AS VALUES`)

// operators take an operand into one that is deeper by one.
var operators = lexer.WordSet(`+ - * / % & | ^ ! ~ = < > DIV MOD NOT XOR IS LIKE RLIKE REGEXP BETWEEN IN BINARY COLLATE INTERVAL SOUNDS
	MEMBER`)

// checkDepth refuses a statement that nests deeper than maxDepth. It adds up, level by
// level, what a parenthesis or a CASE holds and the operators beside it, as if each
// operator took all before it: no expression is deeper than that.
func checkDepth(t lexer.Tokens) error {
	type level struct{ operand, deepest int }
	levels := []level{{}}
	for i := range t {
		here := &levels[len(levels)-1]
		switch key := t[i].Key; {
		case key == "(" || key == "CASE":
			levels = append(levels, level{})
		case (key == ")" || key == "END") && len(levels) > 1:
			inner := max(here.operand, here.deepest) + levelsOf(t, i)
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
			return lexer.Refuse("sql.depth", "the statement nests deeper than %d, which crashes servers: split it with "+
				"WITH, or use fewer operators in a row", maxDepth)
		}
	}
	return nil
}

// levelsOf is how many levels the parenthesis or CASE that ends at i counts for. MariaDB
// computes an argument of NULLIF and LOCATE twice, and thus one that is fifty levels down
// longer than any limit, and KILL does not end that.
func levelsOf(t lexer.Tokens, i int) int {
	if t[i].Key == ")" {
		switch t.Key(t[i].Mate - 1) {
		case "NULLIF", "LOCATE":
			return 8
		}
	}
	return 1
}
