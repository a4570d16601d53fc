package statements

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	mysqldriver "github.com/go-sql-driver/mysql"

	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
	"hub.internal/services/query"
	"hub.internal/services/query/mysql/errno"
	"hub.internal/services/query/sqlguard/advice"
)

// tmpSpace are the errors of a statement that needs more temporary space than there is: a
// temporary table is full, and what MariaDB 11.5 says of a session's and of the server's
// limit, as a file's or as a storage engine's error.
var tmpSpace = map[uint16]bool{1114: true, 41: true, 42: true, 200: true, 201: true}

// statementDetails are the details of E_VALIDATION: the server's number, for programs, and the same words as in the
// message.
type statementDetails struct {
	DBErrno    uint16             `json:"db_errno"`
	Violations []schema.Violation `json:"violations"`
}

// refusal has the rule sql.server: the guard let the statement through, and the server did not.
func refusal(number uint16, message string) statementDetails {
	return statementDetails{DBErrno: number, Violations: []schema.Violation{{Path: "/sql", Rule: "sql.server", Message: message}}}
}

// numberAdvice is what to write instead, by number, where the server's own words only say what is wrong.
var numberAdvice = map[uint16]string{
	errno.AmbiguousColumn: "write the table or its alias in front: alias.column",
	errno.DatabaseDenied:  "leave the schema out, describe_schema lists the tables that Hub may read",
	errno.UnknownDatabase: "leave the schema out, describe_schema lists the tables that Hub may read",
	errno.BrokenView:      "the view cannot be read any more, an administrator of the source database has to mend it; read its tables instead",
	errno.NoDefiner:       "the view cannot be read any more, an administrator of the source database has to mend it; read its tables instead",
	errno.AccessNeeded:    "read the marketplace's own tables, describe_schema lists them",
	1038:                  "sort fewer and shorter columns: order the ids in a derived table, and join the long columns to them",
	1051:                  "name the table behind FROM, or write its alias in front of .*",
	1096:                  "name the tables to read behind FROM, describe_schema lists them",
	1115:                  "write utf8mb4, or leave the character set out",
	1119:                  "the statement nests too deep for this server: split it with WITH",
	1273:                  "leave COLLATE out, or write utf8mb4_bin; SHOW COLLATION lists the others",
	1436:                  "the statement nests too deep for this server: split it with WITH",
	errno.Recursion:       "end the recursion with a WHERE in its second SELECT, such as WHERE n < 1000, or recurse over fewer rows",
	1056:                  "group by columns, not by an aggregate",
	1060:                  "give the columns of a derived table names of their own: col AS name",
	1066:                  "give each table an alias of its own",
	1109:                  "name the table behind FROM, or write its alias in front of the column",
	1111:                  "aggregates stand in SELECT, HAVING and ORDER BY: filter groups with HAVING",
	1140:                  "add GROUP BY with the columns that are no aggregates",
	1055:                  "add the column to GROUP BY, or take MAX() of it",
	1525:                  "the text is no date: write '2026-01-31' or '2026-01-31 09:00:00', or STR_TO_DATE(text, format)",
	1222:                  "each SELECT of a UNION needs as many columns",
	1241:                  "compare as many columns as the subquery has; a list of values is written x IN ('a', 'b')",
	1242:                  "a subquery beside = answers one row: write IN, or LIMIT 1",
	1248:                  "write an alias behind the parenthesis: (SELECT …) AS t",
	errno.NotSupported:    "join with a derived table instead",
	3593:                  "compute a window function in a WITH, and filter in the SELECT behind it",
	4078:                  "compare two values of one kind: a list of values is written x IN ('a', 'b')",
	4015:                  "compute a window function in a WITH, and filter in the SELECT behind it",
}

var (
	account       = regexp.MustCompile("(to|for) user '[^']*'@'[^']*'")
	nearWhere     = regexp.MustCompile(`(?s)near '(.*)' at line \d+$`)
	unknownColumn = regexp.MustCompile(`Unknown column '([^']*)'`)
	unknownTable  = regexp.MustCompile(`Table '(?:[^'.]*\.)?([^']*)' doesn't exist`)
	deniedTable   = regexp.MustCompile("for table (?:`[^`]*`\\.)?[`']([^`']+)[`']")
	invalidString = regexp.MustCompile(`string:? '([^']*)'`)
	functionName  = regexp.MustCompile("(?:FUNCTION |FUNCTION `|routine '|native function ')(?:[^\\s'`]*\\.)?([^\\s'`.]+)")
)

// translate is a server's refusal in words that say what to write instead. It has neither the account's name nor a text that
// Hub has added.
func (r *Reader) translate(ctx context.Context, st query.Statement, answered *mysqldriver.MySQLError) string {
	written := st.Written
	if written == "" {
		written = st.Text
	}
	message := account.ReplaceAllString(answered.Message, "to Hub")
	switch answered.Number {
	case errno.Syntax, errno.EmptyQuery:
		return syntax(st.Text, written, answered.Message, r.dialect(ctx))
	case errno.NeedsHypergraph, errno.UnknownType, errno.NotSupported:
		if answered.Number == errno.NotSupported && !strings.Contains(answered.Message, "NULLS") {
			break // IN with LIMIT, which has words of its own
		}
		if hint := advice.Syntax(written, r.dialect(ctx)); hint != "" {
			return hint
		}
	case errno.UnknownColumn:
		if m := unknownColumn.FindStringSubmatch(message); m != nil {
			return r.known(ctx).missingColumn(m[1], written, message)
		}
	case errno.NoSuchTable, errno.TableDenied:
		m := unknownTable.FindStringSubmatch(message)
		if m == nil {
			m = deniedTable.FindStringSubmatch(message)
		}
		if m != nil {
			return r.known(ctx).missingTable(m[1])
		}
	case errno.AccessDenied:
		return "a view that the statement reads cannot be read: the account that defined it no longer exists, or has no rights any more. " +
			"An administrator of the source database has to mend the view; read its tables instead"
	case errno.InvalidString, errno.CannotConvert:
		if m := invalidString.FindStringSubmatch(message); m != nil {
			name := unescaped(m[1])
			// Names are kept in utf8mb3, which has the characters of 16 bits, and so may columns be.
			if strings.HasSuffix(message, "utf8mb3") || strings.ContainsFunc(name, func(r rune) bool { return r > 0xFFFF }) {
				return fmt.Sprintf("%q has a character that names, and columns of utf8mb3, cannot have, such as an emoji: write it without that", name)
			}
		}
	case errno.NoFunction, errno.NoFunctionHere, errno.FunctionDenied:
		if m := functionName.FindStringSubmatch(message); m != nil {
			return missingFunction(m[1], written)
		}
	case errno.ParameterCount, errno.Parameters:
		if m := functionName.FindStringSubmatch(message); m != nil {
			if usage := advice.Usage(m[1]); usage != "" {
				return usage
			}
		}
	}
	if more := numberAdvice[answered.Number]; more != "" {
		return message + ": " + more
	}
	return message
}

// dialect is the server's, as the lists of functions name it.
func (r *Reader) dialect(ctx context.Context) string {
	d, err := r.server.Dialect(ctx)
	if err != nil {
		return "" // what it is has been found out before the statement ran
	}
	return string(d)
}

// quotedLength is how much of a statement a message repeats, in characters.
const quotedLength = 40

// syntax names the place where the server stopped, in the caller's own text, and what other databases have there.
func syntax(run, written, message, dialect string) string {
	where := "at its end"
	if m := nearWhere.FindStringSubmatch(message); m != nil {
		if place := strings.TrimSpace(placeIn(run, written, m[1])); place != "" {
			where = fmt.Sprintf("near %q", text.Shorten(place, quotedLength))
		}
	}
	hint := advice.Syntax(written, dialect)
	if hint == "" {
		hint = "look at the word at that place, or before it; a name that is a keyword, such as rank or groups, is written in `backquotes`"
	}
	return fmt.Sprintf("syntax error %s: %s", where, hint)
}

// placeIn returns what of the text as written follows the place at which the server stopped in the text as run: nothing where that is
// in the LIMIT, in which alone the two differ, and the server's own fragment where it is not found.
func placeIn(run, written, fragment string) string {
	at := strings.LastIndex(run, fragment)
	if !strings.HasSuffix(run, fragment) {
		at = cutFrom(run, []rune(fragment))
	}
	same := 0
	for same < len(run) && same < len(written) && run[same] == written[same] {
		same++
	}
	switch {
	case at < 0:
		return fragment
	case at > same || at > len(written):
		return ""
	}
	return written[at:]
}

// cutFrom is where a fragment begins in the text as run, which the server has cut at 80 bytes; -1 for nowhere.
// Its last three characters are no part of the text: MariaDB writes ... there, and MySQL the bytes of a character that it has cut. For
// characters beyond 16 bits both write a question mark.
func cutFrom(run string, fragment []rune) int {
	if len(fragment) <= 3 {
		return -1
	}
	fragment = fragment[:len(fragment)-3]
	for at := range run {
		matched := 0
		for _, r := range run[at:] {
			if matched == len(fragment) || r != fragment[matched] && (fragment[matched] != '?' || r <= 0xFFFF) {
				break
			}
			matched++
		}
		if matched == len(fragment) {
			return at
		}
	}
	return -1
}

// mostListed bounds how many names a message lists.
const mostListed = 20

func list(names []string) string {
	if len(names) > mostListed {
		return strings.Join(names[:mostListed], ", ") + fmt.Sprintf(" and %d more", len(names)-mostListed)
	}
	return strings.Join(names, ", ")
}

func (n *names) missingTable(name string) string {
	if _, plain, dotted := strings.Cut(name, "."); dotted {
		name = plain
	}
	switch nearest := schema.Nearest(name, n.tables); {
	case len(n.tables) == 0:
		return fmt.Sprintf("there is no table %q that Hub may read; describe_schema lists them", name)
	case n.table(name) == name: // of another schema
		return fmt.Sprintf("a table is named without a schema in front: write %s", name)
	case nearest != "":
		return fmt.Sprintf("there is no table %q that Hub may read; did you mean %s? There are %s", name, nearest, list(n.tables))
	}
	return fmt.Sprintf("there is no table %q that Hub may read; there are %s", name, list(n.tables))
}

// missingColumn explains an unknown column in a statement; message is the server's, which tells the clause.
func (n *names) missingColumn(name, written, message string) string {
	if instead := advice.Pseudo(name); instead != "" {
		return instead
	}
	words := advice.Words(written)
	prefix, plain := "", name
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		prefix, plain = name[:i], name[i+1:]
	}
	tables := n.mentioned(words)
	said := fmt.Sprintf("there is no column %q", name)
	if of := n.behind(prefix, words); of != "" {
		tables = []string{of}
	} else if prefix != "" {
		said += fmt.Sprintf(": %s is no table or alias of the statement, or has no such column", prefix)
	}
	joint := "; "
	nearest := n.nearest(plain, tables)
	if _, same, _ := strings.Cut(nearest, "."); strings.EqualFold(same, plain) && strings.Contains(strings.ToLower(message), "'having") {
		return said + " in HAVING, which knows what SELECT and GROUP BY name: filter rows in WHERE, behind FROM, by " + nearest
	}
	if nearest != "" && !strings.EqualFold(nearest, name) {
		said, joint = said+"; did you mean "+nearest+"?", " "
	} else if owners := n.owners(plain); len(owners) > 0 {
		said += fmt.Sprintf("; %s is a column of %s, which has to be joined", plain, list(owners))
	} else if prefix == "" && strings.Contains(strings.ToLower(message), "'where") {
		said += "; what SELECT names is known to GROUP BY, HAVING and ORDER BY, not to WHERE"
	}
	for _, t := range tables[:min(len(tables), 3)] {
		said, joint = said+joint+t+" has "+list(n.columns[t]), "; "
	}
	return said
}

// mentioned are the tables that are among a statement's words, in their order.
func (n *names) mentioned(words []string) (tables []string) {
	for _, w := range words {
		if t := n.table(w); t != "" && !slices.Contains(tables, t) {
			tables = append(tables, t)
		}
	}
	return tables
}

// behind is the table that a prefix of a column stands for: its name, or its alias behind it; "" when that is not known.
func (n *names) behind(prefix string, words []string) string {
	if prefix == "" {
		return ""
	}
	for i, w := range words {
		if i > 0 && strings.EqualFold(w, prefix) {
			before := i - 1
			if before > 0 && strings.EqualFold(words[before], "as") {
				before--
			}
			if t := n.table(words[before]); t != "" {
				return t
			}
		}
	}
	return n.table(prefix)
}

func missingFunction(name, written string) string {
	if how := advice.Spaced(written, name); how != "" {
		return how
	}
	if why := advice.Foreign(name); why != "" {
		return fmt.Sprintf("there is no function %s(): it %s", name, why)
	}
	return fmt.Sprintf("there is no function %s() on this server: use its built-in functions of text, number, date, JSON, regexp, "+
		"aggregate and window", name)
}
