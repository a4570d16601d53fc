package sqlguard

import "hub.internal/services/query/sqlguard/lexer"

// closed are the schemas of the server itself, and what they hold.
var closed = [...]struct{ name, why string }{
	{"MYSQL", "holds accounts and the server's settings"},
	{"PERFORMANCE_SCHEMA", "shows what other sessions do"},
	{"SYS", "shows what other sessions do"},
	{"NDBINFO", "shows what other sessions do"},
	{"METRICS_SCHEMA", "shows what other sessions do"},
	{"INSPECTION_SCHEMA", "shows what other sessions do"},
	// MariaDB's names for its own functions.
	{"MARIADB_SCHEMA", "is the server's own"},
	{"ORACLE_SCHEMA", "is the server's own"},
	{"MAXDB_SCHEMA", "is the server's own"},
}

const informationSchema = "INFORMATION_SCHEMA"

// checkSchema refuses the name at i if it is a schema in front of a table that statements
// may not read. A name is compared as the least strict of servers does, so that an alias
// called like such a schema is refused, too.
func (g *Guard) checkSchema(t lexer.Tokens, i int) error {
	if t[i].Name == "" || t.Key(i+1) != "." || t.Key(i-1) == "." {
		return nil
	}
	if err := checkClosed(t[i].Name); err != nil {
		return err
	}
	if i+2 < len(t) && lexer.Alike(t[i].Name, informationSchema) {
		return g.checkTable(t[i+2].Name)
	}
	return nil
}

// checkClosed refuses a closed schema.
func checkClosed(schema string) error {
	for _, c := range closed {
		if lexer.Alike(schema, c.name) {
			return lexer.Refuse("sql.schema", "%s %s: query the tables themselves, SHOW TABLES and "+
				"information_schema.TABLES list them (an alias needs another name)", c.name, c.why)
		}
	}
	return nil
}

// checkTable refuses a table of information_schema that is not on the list.
func (g *Guard) checkTable(name string) error {
	if !g.tables[name] {
		return lexer.Refuse("sql.schema", "information_schema.%.40s shows sessions, accounts or the server's insides: read "+
			"TABLES, COLUMNS, STATISTICS or ROUTINES, "+
			"or use SHOW VARIABLES or SHOW GLOBAL STATUS", name)
	}
	return nil
}

// checkVariable refuses the system variable at i, the marks @@, if it is not on the list.
func (g *Guard) checkVariable(t lexer.Tokens, i int) error {
	if t[i].Key != "@@" {
		return nil
	}
	name, dotted := "", false
	if i+1 < len(t) {
		name = t[i+1].Name
	}
	if t.Key(i+2) == "." && i+3 < len(t) {
		switch name {
		case "GLOBAL", "SESSION", "LOCAL":
			name = t[i+3].Name
		default:
			dotted = true
		}
	}
	if dotted || !g.variables[name] {
		return lexer.Refuse("sql.variable", "@@%.40s is not on the list of variables: it may hold what another caller's "+
			"statement left, or tell of the server's machine. "+
			"Leave it out, or look at SHOW GLOBAL VARIABLES", name)
	}
	return nil
}
