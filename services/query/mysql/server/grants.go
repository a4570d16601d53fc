package server

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// readRights are all that the source account may hold, on whatever schema or table.
var readRights = []string{"USAGE", "SELECT", "SHOW VIEW"}

// lagRights let an account see how far a replica lags behind, and nothing of what it holds.
func lagRights(d Dialect) []string {
	if d == MariaDB {
		return []string{"SLAVE MONITOR", "REPLICA MONITOR"}
	}
	return []string{"REPLICATION CLIENT"}
}

// GrantsError says that the source account may do more than read. Hub does not serve
// with such an account: what the guard and the read-only session let slip, the grants
// have to stop.
type GrantsError struct{ Findings []Finding }

// Finding is what a line of SHOW GRANTS gives beyond reading.
type Finding struct {
	// Rights are such as "CREATE ROUTINE", "UPDATE (`name`)", "GRANT OPTION", "PROXY".
	Rights []string
	On     string // such as "`shop`.*"; empty for a role's
	Role   string // the role that brings it; empty for a grant of the account's own
	// Mend are the statements that take it away, and nothing that Hub needs, for an
	// administrator of the source; none for a line that Hub cannot read.
	Mend []string
}

// Error names what is too much, and the statements that mend it, on one line.
func (e *GrantsError) Error() string {
	var found, mend []string
	for _, f := range e.Findings {
		text := strings.Join(f.Rights, ", ")
		if n := len(f.Rights); n > shownRights {
			text = strings.Join(f.Rights[:shownRights], ", ") + fmt.Sprintf(" and %d more rights", n-shownRights)
		}
		if f.On != "" {
			text += " on " + f.On
		}
		if f.Role != "" {
			text += " through the role " + f.Role
		}
		found = append(found, text)
		for _, statement := range f.Mend {
			if !slices.Contains(mend, statement) { // one role may bring several
				mend = append(mend, statement)
			}
		}
	}
	const otherwise = "make an account with nothing but SELECT and SHOW VIEW on the schemas to read"
	text := "the source account may do more than read: it holds " + strings.Join(found, "; and ")
	if len(mend) == 0 {
		return text + "; " + otherwise
	}
	return text + ". Run as an administrator of the source: " + strings.Join(mend, "; ") + "; or " + otherwise
}

// shownRights is how many of a finding's rights are named: what mends them matters more.
const shownRights = 4

// everybody is MariaDB's role that each account has.
const everybody = "PUBLIC"

// checkGrants returns a *GrantsError when the current account, or a role it has been
// given, active or not, holds more than readRights and EXECUTE on functions, which are
// written name or schema.name; of a replica, lagRights as well.
// everything tells that it may read all schemas, the server's own among them.
func checkGrants(ctx context.Context, db *sql.DB, d Dialect, functions []string, replica bool) (everything bool, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return false, err
	}
	// The session has had its role set: nobody else gets it.
	defer func() { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }()
	j := judge{dialect: d, functions: functions, replica: replica}
	if err := conn.QueryRowContext(ctx, "SELECT CURRENT_USER()").Scan(&j.account); err != nil {
		return false, fmt.Errorf("the source account's name: %w", err)
	}
	j.account = quoteAccount(j.account)
	if d != MariaDB {
		// Roles that are active by default would show as rights of the account's own, which no REVOKE takes away.
		if _, err := conn.ExecContext(ctx, "SET ROLE NONE"); err != nil {
			return false, err
		}
		var mandatory string
		if err := conn.QueryRowContext(ctx, "SELECT @@GLOBAL.mandatory_roles").Scan(&mandatory); err != nil && !isAnswer(err) {
			return false, err
		}
		j.mandatory = quotedRoles(mandatory)
	}
	roles, err := j.show(ctx, conn, "SHOW GRANTS FOR CURRENT_USER", "")
	if err != nil {
		return false, err
	}
	if d == MariaDB {
		// What everybody holds. Servers before 10.11 know no PUBLIC and answer an error.
		if _, err := j.show(ctx, conn, "SHOW GRANTS FOR "+everybody, everybody); err != nil && !isAnswer(err) {
			return false, err
		}
	}
	for _, role := range slices.Concat(roles, j.mandatory) { // which no line of the account's tells of
		show := "SHOW GRANTS FOR CURRENT_USER USING " + role
		if d == MariaDB {
			// A role's rights show only once it is set; those of its own roles show with them.
			if _, err := conn.ExecContext(ctx, "SET ROLE "+role); err != nil {
				return false, fmt.Errorf("rights of the role %s: %w", role, err)
			}
			show = "SHOW GRANTS FOR CURRENT_ROLE"
		}
		if _, err := j.show(ctx, conn, show, role); err != nil {
			return false, err
		}
	}
	if len(j.findings) > 0 {
		return false, &GrantsError{j.findings}
	}
	return j.everything, nil
}

// isAnswer reports whether the server itself has refused something.
func isAnswer(err error) bool {
	var answered *mysqldriver.MySQLError
	return errors.As(err, &answered)
}

// judge collects what an account holds beyond reading.
type judge struct {
	dialect Dialect
	account string // quoted for SQL
	// functions are those on which EXECUTE is no finding.
	functions  []string
	replica    bool     // lagRights are no finding
	mandatory  []string // the roles that MySQL gives everybody (mandatory_roles), quoted
	everything bool     // SELECT on *.*
	findings   []Finding
}

// reads tells whether a right lets its holder read, and no more.
func (j *judge) reads(right string) bool {
	return slices.Contains(readRights, right) || j.replica && slices.Contains(lagRights(j.dialect), right)
}

// show judges what a SHOW GRANTS answers and returns the roles in it.
func (j *judge) show(ctx context.Context, conn *sql.Conn, show, role string) (roles []string, err error) {
	rows, err := conn.QueryContext(ctx, show)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", show, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		roles = append(roles, j.line(line, role)...)
	}
	return roles, rows.Err()
}

// line judges a line of SHOW GRANTS, which MariaDB and MySQL write as
//
//	GRANT right [(columns)], ... ON [kind] object TO account [...] [WITH GRANT OPTION]
//	GRANT role, ... TO account [WITH ADMIN OPTION]
//
// It returns the roles that the line gives, quoted for SQL. role is whose line it is;
// empty for the account's own.
func (j *judge) line(line, role string) (roles []string) {
	words := grantWords(line)
	unknown := func(what string) []string {
		j.findings = append(j.findings, Finding{Rights: []string{what}, Role: role})
		return nil
	}
	switch {
	case len(words) == 0:
		return nil
	case keyword(words, 0) == "SET" && keyword(words, 1) == "DEFAULT": // SET DEFAULT ROLE r FOR u: the role has a line of its own
		return nil
	case keyword(words, 0) == "REVOKE": // MySQL's partial revokes only take away
		return nil
	case keyword(words, 0) != "GRANT":
		return unknown("a right that Hub cannot read (" + words[0] + " …)")
	}
	given, end := grantList(words[1:])
	words = words[1+end:]
	var on string
	switch keyword(words, 0) {
	case "ON":
		i := 1
		for i < len(words) && keyword(words, i) != "TO" {
			i++
		}
		on = spell(words[1:i])
		var more []string
		for _, right := range given {
			name := strings.ToUpper(strings.Join(right.name, " "))
			j.everything = j.everything || name == "SELECT" && on == "*.*"
			if !j.reads(name) && (name != "EXECUTE" || !isFunction(words[1:i], j.functions)) {
				more = append(more, name+right.columns)
			}
		}
		if len(more) > 0 {
			j.findings = append(j.findings, Finding{Rights: more, On: on, Role: role, Mend: j.revoke(more, on, role)})
			if slices.Contains(more, "PROXY") {
				return nil // its own GRANT OPTION goes with it
			}
		}
	case "TO":
		for _, name := range given {
			roles = append(roles, quoteRole(name.name))
		}
	default:
		return unknown("a right that Hub cannot read")
	}
	for i := range words {
		if keyword(words, i) == "OPTION" {
			option := keyword(words, i-1) + " OPTION"
			j.findings = append(j.findings, Finding{Rights: []string{option}, On: on, Role: role, Mend: j.withoutOption(option, on, role, roles)})
		}
	}
	return roles
}

// isFunction reports whether the object of a grant, FUNCTION schema.name, is one of the
// functions.
func isFunction(object, functions []string) bool {
	if len(object) != 4 || keyword(object, 0) != "FUNCTION" || object[2] != "." {
		return false
	}
	schema, name := unquote(object[1]), unquote(object[3])
	return slices.ContainsFunc(functions, func(f string) bool {
		return strings.EqualFold(f, name) || strings.EqualFold(f, schema+"."+name)
	})
}

// unquote is a name without its quotes.
func unquote(word string) string {
	if !isQuoted(word) || len(word) < 2 {
		return word
	}
	quote := word[:1]
	return strings.ReplaceAll(word[1:len(word)-1], quote+quote, quote)
}

// revoke are the statements that take rights away. A role is taken from the account rather
// than changed: others may need it as it is.
func (j *judge) revoke(rights []string, on, role string) []string {
	switch {
	case role == everybody:
		return []string{"REVOKE ALL PRIVILEGES ON " + on + " FROM " + everybody}
	case role != "":
		return []string{j.withoutRole(role)}
	case rights[0] == "ALL PRIVILEGES" && on != "*.*":
		return []string{"REVOKE ALL PRIVILEGES ON " + on + " FROM " + j.account, "GRANT SELECT, SHOW VIEW ON " + on + " TO " + j.account}
	}
	return []string{"REVOKE " + strings.Join(rights, ", ") + " ON " + on + " FROM " + j.account}
}

// withoutRole is the statement that takes a role, quoted, from the account. A mandatory role is everybody's, and goes from them
// all.
func (j *judge) withoutRole(role string) string {
	if !slices.Contains(j.mandatory, role) {
		return "REVOKE " + role + " FROM " + j.account
	}
	others := slices.DeleteFunc(slices.Clone(j.mandatory), func(other string) bool { return other == role })
	return "SET PERSIST mandatory_roles = '" + strings.ReplaceAll(strings.Join(others, ","), "'", "''") + "'"
}

// quotedRoles reads a list of roles such as a,`b`@`%`, in which no name has a comma.
func quotedRoles(list string) (roles []string) {
	for role := range strings.SplitSeq(list, ",") {
		name, host, found := strings.Cut(strings.TrimSpace(role), "@")
		if !found {
			host = "%"
		}
		if name != "" {
			roles = append(roles, quoteName(strings.Trim(name, "`'\""))+"@"+quoteName(strings.Trim(host, "`'\"")))
		}
	}
	return roles
}

// withoutOption are the statements that take away what lets the account pass its rights, or its
// roles, on to others.
func (j *judge) withoutOption(option, on, role string, roles []string) (statements []string) {
	switch {
	case role == everybody:
		return []string{"REVOKE " + option + " ON " + on + " FROM " + everybody}
	case role != "":
		return []string{j.withoutRole(role)}
	case on != "":
		return []string{"REVOKE " + option + " ON " + on + " FROM " + j.account}
	}
	for _, r := range roles {
		if j.dialect == MariaDB {
			statements = append(statements, "REVOKE "+option+" FOR "+r+" FROM "+j.account)
			continue
		}
		// MySQL takes the option with the role only.
		statements = append(statements, "REVOKE "+r+" FROM "+j.account, "GRANT "+r+" TO "+j.account)
	}
	return statements
}

// granted is a right with its columns, or a role.
type granted struct {
	name    []string
	columns string // such as " (`a`, `b`)"
}

// grantList cuts the list in front of ON or TO at its commas, and returns the index of ON
// or TO.
func grantList(words []string) (list []granted, end int) {
	var item granted
	depth, columns := 0, 0
	for i, w := range words {
		switch key := keyword(words, i); {
		case w == "(":
			depth++
			columns = i
		case w == ")":
			depth--
			item.columns = " " + strings.ReplaceAll(strings.Join(words[columns:i+1], ""), ",", ", ")
		case depth > 0:
		case w == ",":
			list, item = append(list, item), granted{}
		case key == "ON", key == "TO":
			return append(list, item), i
		default:
			item.name = append(item.name, w)
		}
	}
	return append(list, item), len(words)
}

// spell puts the words of an object together again: a space between two that no mark joins.
func spell(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 && !strings.Contains(".@*", w) && !strings.Contains(".@*", words[i-1]) {
			b.WriteByte(' ')
		}
		b.WriteString(w)
	}
	return b.String()
}

// quoteAccount quotes what CURRENT_USER() answers: the host is behind the last @.
func quoteAccount(account string) string {
	i := strings.LastIndexByte(account, '@')
	if i < 0 {
		return quoteName(account)
	}
	return quoteName(account[:i]) + "@" + quoteName(account[i+1:])
}

func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// keyword is the word at i in upper case; empty for a quoted name and past the end.
func keyword(words []string, i int) string {
	if i < 0 || i >= len(words) || isQuoted(words[i]) {
		return ""
	}
	return strings.ToUpper(words[i])
}

// grantWords cuts a line into words, marks and quoted names, quotes kept.
func grantWords(line string) (words []string) {
	for i := 0; i < len(line); {
		c := line[i]
		start := i
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			i++
			continue
		case c == '`' || c == '\'' || c == '"':
			for i++; i < len(line); i++ {
				if line[i] == '\\' && c == '\'' {
					i++
				} else if line[i] == c {
					if i+1 < len(line) && line[i+1] == c {
						i++
						continue
					}
					break
				}
			}
			i = min(i+1, len(line))
		case strings.IndexByte("(),@.*", c) >= 0:
			i++
		default:
			for i < len(line) && strings.IndexByte(" \t\r\n`'\"(),@.*", line[i]) < 0 {
				i++
			}
		}
		words = append(words, line[start:i])
	}
	return words
}

func isQuoted(word string) bool { return strings.IndexByte("`'\"", word[0]) >= 0 }

// quoteRole makes a role's name, with its host if there is one, safe to stand in a
// statement: SHOW GRANTS quotes it already, old MariaDB servers do not.
func quoteRole(words []string) string {
	var b strings.Builder
	for _, w := range words {
		if w != "@" && !isQuoted(w) {
			w = quoteName(w)
		}
		b.WriteString(w)
	}
	return b.String()
}
