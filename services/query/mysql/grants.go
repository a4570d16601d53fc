package mysql

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

// GrantsError says that the source account may do more than read. Hub does not serve
// with such an account: what the guard and the read-only session let slip, the grants
// have to stop.
type GrantsError struct {
	Privilege string // such as "CREATE ROUTINE", "GRANT OPTION", "PROXY"
	On        string // such as "`shop`.*"; empty for a role's
	Role      string // the role that brings it; empty for a grant of the account's own
}

// Error names the privilege and what to do.
func (e *GrantsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the source account may do more than read: it holds %s", e.Privilege)
	if e.On != "" {
		fmt.Fprintf(&b, " on %s", e.On)
	}
	if e.Role != "" {
		fmt.Fprintf(&b, " through the role %s", e.Role)
	}
	b.WriteString("; revoke it, or make an account with nothing but SELECT and SHOW VIEW on the schemas to read")
	return b.String()
}

// checkGrants returns a *GrantsError when the current account, or a role it has been
// given, active or not, holds more than readRights and EXECUTE on functions, which are
// written name or schema.name.
func checkGrants(ctx context.Context, db *sql.DB, d Dialect, functions []string) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	// The session has had its role set: nobody else gets it.
	defer func() { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }()
	roles, err := judgeGrants(ctx, conn, "SHOW GRANTS FOR CURRENT_USER", "", functions)
	if err != nil {
		return err
	}
	if d == MariaDB {
		// What everybody holds. Servers before 10.11 know no PUBLIC and answer an error.
		var answered *mysqldriver.MySQLError
		if _, err := judgeGrants(ctx, conn, "SHOW GRANTS FOR PUBLIC", "PUBLIC", functions); err != nil && !errors.As(err, &answered) {
			return err
		}
	}
	for _, role := range roles {
		show := "SHOW GRANTS FOR CURRENT_USER USING " + role
		if d == MariaDB {
			// A role's rights show only once it is set; those of its own roles show with them.
			if _, err := conn.ExecContext(ctx, "SET ROLE "+role); err != nil {
				return fmt.Errorf("rights of the role %s: %w", role, err)
			}
			show = "SHOW GRANTS FOR CURRENT_ROLE"
		}
		if _, err := judgeGrants(ctx, conn, show, role, functions); err != nil {
			return err
		}
	}
	return nil
}

// judgeGrants judges what a SHOW GRANTS answers and returns the roles in it.
func judgeGrants(ctx context.Context, conn *sql.Conn, show, role string, functions []string) (roles []string, err error) {
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
		more, err := judgeGrant(line, role, functions)
		if err != nil {
			return nil, err
		}
		roles = append(roles, more...)
	}
	return roles, rows.Err()
}

// judgeGrant judges a line of SHOW GRANTS, which MariaDB and MySQL write as
//
//	GRANT right [(columns)], ... ON [kind] object TO account [...] [WITH GRANT OPTION]
//	GRANT role, ... TO account [WITH ADMIN OPTION]
//
// It returns the roles that the line gives, quoted for SQL. role is whose line it is;
// empty for the account's own.
func judgeGrant(line, role string, functions []string) (roles []string, err error) {
	words := grantWords(line)
	refuse := func(privilege, on string) ([]string, error) {
		return nil, &GrantsError{Privilege: privilege, On: on, Role: role}
	}
	switch {
	case len(words) == 0:
		return nil, nil
	case keyword(words, 0) == "SET" && keyword(words, 1) == "DEFAULT": // SET DEFAULT ROLE r FOR u: the role has a line of its own
		return nil, nil
	case keyword(words, 0) == "REVOKE": // MySQL's partial revokes only take away
		return nil, nil
	case keyword(words, 0) != "GRANT":
		return refuse("a right that Hub cannot read ("+words[0]+" …)", "")
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
		on = strings.Join(words[1:i], "")
		for _, right := range given {
			name := strings.ToUpper(strings.Join(right, " "))
			if !slices.Contains(readRights, name) && (name != "EXECUTE" || !isFunction(words[1:i], functions)) {
				return refuse(name, on)
			}
		}
	case "TO":
		for _, name := range given {
			roles = append(roles, quoteRole(name))
		}
	default:
		return refuse("a right that Hub cannot read", "")
	}
	for i := range words {
		if keyword(words, i) == "OPTION" {
			return refuse(keyword(words, i-1)+" OPTION", on)
		}
	}
	return roles, nil
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

// grantList cuts the list in front of ON or TO at its commas, column lists left out,
// and returns the index of ON or TO.
func grantList(words []string) (list [][]string, end int) {
	var item []string
	depth := 0
	for i, w := range words {
		switch key := keyword(words, i); {
		case w == "(":
			depth++
		case w == ")":
			depth--
		case depth > 0:
		case w == ",":
			list, item = append(list, item), nil
		case key == "ON", key == "TO":
			return append(list, item), i
		default:
			item = append(item, w)
		}
	}
	return append(list, item), len(words)
}

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
			w = "`" + strings.ReplaceAll(w, "`", "``") + "`"
		}
		b.WriteString(w)
	}
	return b.String()
}
