package calls

import (
	"slices"

	"hub.internal/services/query/sqlguard/lexer"
)

// Labels are the tokens of texts that are meant as such: keys of a JSON object, branches of IF and CASE, what CONCAT puts beside a name
// or a call, items of a UNION's list beside what is no text, and all of a statement about information_schema, where names of columns are
// values. All are found at once, as a statement may have a thousand of them.
// None are those of SELECT "name", "email" FROM partner_admin UNION …, where each item may be meant for a column.
func Labels(t lexer.Tokens) map[int]bool {
	found, union := map[int]bool{}, t.Find("UNION")
	for j := range t {
		switch key := t.Key(j); {
		case t.Name(j) == "INFORMATION_SCHEMA" && t.Key(j+1) == ".":
			for i := range t {
				found[i] = true
			}
			return found
		case lexer.IsOneOf(key, "THEN|ELSE") && lexer.IsOneOf(t.Key(j+2), "WHEN|ELSE|END"):
			found[j+1] = true
		case key == "SELECT" && union:
			list := t.Selected(j)
			beside := slices.ContainsFunc(list, func(a lexer.Argument) bool { return a.From < a.To && !t[a.From].Quoted })
			for _, a := range list {
				if beside && (a.To == a.From+1 || t.Key(a.From+1) == "AS") {
					found[a.From] = true
				}
			}
		case lexer.IsOneOf(key, "CONCAT|CONCAT_WS") && t.Key(j+1) == "(":
			list := t.Arguments(j + 1)
			beside := slices.ContainsFunc(list, func(a lexer.Argument) bool { return t.Name(a.From) != "" })
			for _, a := range list {
				if beside && a.To == a.From+1 {
					found[a.From] = true
				}
			}
		case lexer.IsOneOf(key, "IF|JSON_OBJECT|JSON_OBJECTAGG") && t.Key(j+1) == "(":
			for at, a := range t.Arguments(j + 1) {
				isLabel := key == "IF" && at > 0 || key == "JSON_OBJECT" && at%2 == 0 || key == "JSON_OBJECTAGG" && at == 0
				if isLabel && a.To == a.From+1 {
					found[a.From] = true
				}
			}
		}
	}
	return found
}
