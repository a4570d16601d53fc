package query_test

import (
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/services/query"
)

// everyType has a column of each type, as it is declared, with a value.
var everyType = [][2]string{
	{"TINYINT", "-128"}, {"TINYINT UNSIGNED", "255"}, {"TINYINT(1)", "1"}, {"SMALLINT", "-32768"}, {"MEDIUMINT UNSIGNED", "16777215"},
	{"INT", "-2147483648"}, {"INT UNSIGNED", "4294967295"}, {"INT(7) ZEROFILL", "42"}, {"BIGINT", "-9223372036854775808"},
	{"BIGINT UNSIGNED", "18446744073709551615"}, {"DECIMAL(65,30)", "-12345678901234567890.012345678901234567890123456789"},
	{"DECIMAL(5,0)", "7"}, {"FLOAT", "1.1"}, {"DOUBLE", "5e-324"}, {"DOUBLE", "-1.7976931348623157e308"}, {"BIT(1)", "b'1'"},
	{"BIT(8)", "b'10000001'"}, {"BIT(64)", "b'1111111111111111111111111111111111111111111111111111111111111111'"}, {"YEAR", "2026"},
	{"DATE", "'2026-01-31'"}, {"DATE", "'0000-00-00'"}, {"DATE", "'2026-02-00'"}, {"TIME", "'-838:59:59'"}, {"TIME(6)", "'01:02:03.456789'"},
	{"DATETIME", "'2026-01-31 09:00:00'"}, {"DATETIME(6)", "'2026-01-31 09:00:00.250000'"}, {"TIMESTAMP NULL", "'2026-01-31 09:00:00'"},
	{"CHAR(4)", "'ab'"}, {"VARCHAR(50)", `'né "q" \\ \n\t <b>&'`}, {"TINYTEXT", "'x'"}, {"TEXT", "'😀 한글'"}, {"MEDIUMTEXT", "'y'"},
	{"LONGTEXT", "'z'"}, {"ENUM('a','b\"c')", "'b\"c'"}, {"SET('x','y')", "'x,y'"}, {"VARCHAR(20) CHARACTER SET latin1", "'café'"},
	{"VARCHAR(20) CHARACTER SET utf16", "'한'"}, {"BINARY(3)", "'a'"}, {"VARBINARY(10)", "x'00ff'"}, {"TINYBLOB", "x'fffe'"},
	{"BLOB", "x'00'"}, {"LONGBLOB", "'text'"}, {"JSON", `'{"a": [1, null, "x"]}'`}, {"POINT", "POINT(1, 2)"},
}

// TestTypesOfEachServer compares an answer with the text that the driver has of the same value.
func TestTypesOfEachServer(t *testing.T) {
	hubtest.SourceServers(t, func(t *testing.T, on *localserver.SourceServer) {
		x := serveOn(t, on)
		conn, err := x.admin.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var columns, values, names []string
		for i, c := range everyType {
			name := "c" + strconv.Itoa(i)
			names, columns, values = append(names, name), append(columns, name+" "+c[0]), append(values, c[1])
		}
		for _, q := range []string{"SET SESSION sql_mode = '', time_zone = '+00:00', NAMES utf8mb4",
			"CREATE TABLE every_type (" + strings.Join(columns, ", ") + ")",
			"INSERT INTO every_type VALUES (" + strings.Join(values, ", ") + ")",
			"INSERT INTO every_type () VALUES ()"} {
			if _, err := conn.ExecContext(t.Context(), q); err != nil {
				t.Fatalf("%s: %v", q, err)
			}
		}
		var got struct {
			Columns []query.ResultColumn
			Rows    [][]json.RawMessage
		}
		r, err := x.raw(t.Context(), "execute_read_sql", map[string]string{"sql": "SELECT " + strings.Join(names, ", ") +
			" FROM every_type ORDER BY c0 IS NULL"})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(r.Data, &got); err != nil || len(got.Rows) != 2 {
			t.Fatalf("%v: %s", err, r.Data)
		}
		raw, targets := make([]sql.RawBytes, len(names)), make([]any, len(names))
		for i := range raw {
			targets[i] = &raw[i]
		}
		rows, err := conn.QueryContext(t.Context(), "SELECT * FROM every_type ORDER BY c0 IS NULL")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for n := 0; rows.Next(); n++ {
			if err := rows.Scan(targets...); err != nil {
				t.Fatal(err)
			}
			for i, c := range everyType {
				if !means(string(got.Rows[n][i]), got.Columns[i].Type, raw[i]) {
					t.Errorf("%s (%s): answered %s, the driver has %q", c[0], got.Columns[i].Type, got.Rows[n][i], raw[i])
				}
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		for i, c := range call[query.TableColumns](x, "describe_schema", `{"table": "every_type"}`).Columns {
			declared, _, _ := strings.Cut(strings.ToLower(everyType[i][0]), " ")
			if declared == "json" {
				declared = c.Type[:min(4, len(c.Type))] // MariaDB's is longtext
			}
			if !strings.HasPrefix(c.Type, strings.TrimSuffix(declared, "(7)")) || c.Name != names[i] {
				t.Errorf("%s is described as %s %s", everyType[i][0], c.Name, c.Type)
			}
		}
	})
}

// means tells whether a value in JSON is what the server's text says.
func means(answered, kind string, raw sql.RawBytes) bool {
	if raw == nil {
		return answered == "null"
	}
	var value any
	d := json.NewDecoder(strings.NewReader(answered))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return false
	}
	said, isText := value.(string)
	number, isNumber := value.(json.Number)
	kind, _, _ = strings.Cut(kind, " ")
	switch kind {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit":
		want := new(big.Int).SetBytes(raw)
		if kind != "bit" {
			want, _ = want.SetString(string(raw), 10)
		}
		// Beyond 2^53 it is a text.
		return isNumber && number.String() == want.String() && want.BitLen() <= 53 || isText && said == want.String() && want.BitLen() > 53
	case "float", "double":
		a, err1 := strconv.ParseFloat(number.String(), 64)
		b, err2 := strconv.ParseFloat(string(raw), 64)
		return isNumber && err1 == nil && err2 == nil && a == b
	case "datetime", "timestamp":
		return said == strings.Replace(string(raw), " ", "T", 1)
	case "binary", "varbinary", "blob", "geometry":
		return said == "base64:"+base64.StdEncoding.EncodeToString(raw)
	case "json":
		return answered == string(raw)
	}
	return isText && said == string(raw)
}

// shapes are tables of every kind. What is between /*m and m*/ is MySQL's alone, between /*a and a*/ MariaDB's.
var shapes = []string{
	`CREATE TABLE parts (id INT NOT NULL, at DATE NOT NULL, tx TEXT, n INT, hidden INT INVISIBLE DEFAULT 7,
		v INT AS (n * 2) VIRTUAL, s INT AS (n + 1) STORED, word VARCHAR(20) NOT NULL DEFAULT 'it''s',
		made VARCHAR(20) DEFAULT (CONCAT('a''b', 'c')),
		PRIMARY KEY (id, at), KEY beginnings (tx(20), n DESC), KEY unused (n) /*m INVISIBLE m*/ /*a IGNORED a*/
		/*m , KEY computed ((UPPER(CONCAT(word, 'x''y')))) m*/, CONSTRAINT positive CHECK (n > 0))
		PARTITION BY RANGE (YEAR(at)) (PARTITION p0 VALUES LESS THAN (2026), PARTITION p1 VALUES LESS THAN MAXVALUE)`,
	`CREATE TABLE parent (id INT PRIMARY KEY) ENGINE=InnoDB ROW_FORMAT=COMPRESSED COMMENT='it''s'`,
	`CREATE TABLE child (id INT PRIMARY KEY, parent_id INT, CONSTRAINT of_parent FOREIGN KEY (parent_id) REFERENCES parent (id))`,
	"CREATE TABLE `한글 \"x\"` (`a b` INT, `select` INT)",
	`CREATE VIEW kept AS SELECT id, n FROM parts WHERE n > 1`,
	`CREATE SQL SECURITY INVOKER VIEW invoked AS SELECT id FROM kept`,
	`INSERT INTO parts (id, at, tx, n) VALUES (1, '2025-05-05', 'a', 3), (2, '2026-05-05', 'b', 4)`,
}

// TestShapesOfEachServer: tables and views are described, defined and read as the server has them.
func TestShapesOfEachServer(t *testing.T) {
	hubtest.SourceServers(t, func(t *testing.T, on *localserver.SourceServer) {
		version, err := on.Version(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		isMariaDB := strings.Contains(version, "MariaDB")
		var own []string
		for _, q := range shapes {
			theirs, ours := "a", "m"
			if isMariaDB {
				theirs, ours = "m", "a"
			}
			for part, ok := theirs, true; ok; {
				var before, behind string
				if before, behind, ok = strings.Cut(q, "/*"+part+" "); ok {
					_, behind, _ = strings.Cut(behind, " "+part+"*/")
					q = before + behind
				}
			}
			own = append(own, strings.NewReplacer("/*"+ours+" ", "", " "+ours+"*/", "").Replace(q))
		}
		x := serveOn(t, on, own...)
		for _, name := range []string{"parts", "parent", "child", `한글 "x"`} {
			got := call[query.TableDDL](x, "get_ddl", map[string]string{"table": name})
			var ddl string
			if err := x.admin.QueryRow("SHOW CREATE TABLE `"+name+"`").Scan(&name, &ddl); err != nil || got.DDL != ddl {
				t.Errorf("%v: %s\nis defined as\n%s", err, ddl, got.DDL)
			}
		}
		wantIndexes := []query.Index{
			{Name: "PRIMARY", Unique: true, Type: "BTREE", Columns: []string{"id", "at"}},
			{Name: "beginnings", Type: "BTREE", Columns: []string{"tx(20)", "n DESC"}},
			{Name: "unused", Type: "BTREE", Columns: []string{"n"}, Unused: true},
		}
		parts := call[query.TableDDL](x, "get_ddl", `{"table": "parts"}`)
		if !isMariaDB {
			const expression = "upper(concat(`word`,_utf8mb4'x\\'y'))"
			wantIndexes = append(wantIndexes[:2:2], query.Index{Name: "computed", Type: "BTREE", Columns: []string{expression}}, wantIndexes[2])
			if !strings.Contains(parts.DDL, expression) {
				t.Errorf("the DDL has another expression: %s", parts.DDL)
			}
		}
		equal(t, "indexes", parts.Indexes, wantIndexes)
		by := map[string]query.Column{}
		for _, c := range parts.Columns {
			by[c.Name] = c
		}
		if len(by) != 9 || !strings.Contains(by["v"].Extra, "VIRTUAL GENERATED") || !strings.Contains(by["s"].Extra, "STORED GENERATED") ||
			!strings.Contains(by["hidden"].Extra, "INVISIBLE") || *by["word"].Default != "it's" ||
			!strings.Contains(parts.DDL, *by["made"].Default) {
			t.Errorf("columns %s", text(parts.Columns))
		}
		read := func(sql string) string {
			t.Helper()
			var out struct{ Rows [][]any }
			r, err := x.raw(t.Context(), "execute_read_sql", map[string]string{"sql": sql})
			if err != nil {
				return err.Error()
			}
			if err := json.Unmarshal(r.Data, &out); err != nil {
				t.Fatal(err)
			}
			return text(out.Rows)
		}
		for sql, want := range map[string]string{
			"SELECT * FROM parts PARTITION (p1)":          `[[2,"2026-05-05","b",4,8,5,"it's","a'bc"]]`,
			"SELECT hidden, v, s FROM parts WHERE id = 1": `[[7,6,4]]`,
			"SELECT * FROM kept ORDER BY id":              `[[1,3],[2,4]]`,
			"SELECT * FROM invoked ORDER BY id":           `[[1],[2]]`,
			"SELECT COUNT(*) FROM information_schema.PARTITIONS WHERE TABLE_NAME = 'parts' AND TABLE_SCHEMA = DATABASE()": `[[2]]`,
			"SHOW FUNCTION STATUS":                                `[]`,
			"SHOW PROCEDURE STATUS LIKE '%'":                      `[]`,
			"SELECT JSON_EXTRACT('{\"a\": null}', '$.a') IS NULL": `[[0]]`,
		} {
			if got := read(sql); got != want {
				t.Errorf("%s: %s, want %s", sql, got, want)
			}
		}
		for _, tool := range []string{"describe_schema", "get_ddl"} {
			if said := x.refused(tool, `{"table": "kept"}`, fault.NotFound); !strings.Contains(said.Message, "is a view") {
				t.Errorf("%s of a view: %s", tool, said.Message)
			}
		}
	})
}

// TestFoldedNames: where the server keeps names in small letters, they are found however they are written, and what is closed
// stays closed.
func TestFoldedNames(t *testing.T) {
	hubtest.NewSourceServers(t, "lower_case_table_names = 1\n", func(t *testing.T, on *localserver.SourceServer) {
		x := serveOn(t, on, `CREATE TABLE Shop_Order (id INT PRIMARY KEY)`, `INSERT INTO Shop_Order VALUES (1)`,
			`CREATE VIEW Shop_View AS SELECT id FROM Shop_Order`)
		for _, name := range []string{"Shop_Order", "shop_order", "SHOP_ORDER"} {
			in := map[string]string{"table": name}
			if got := call[query.TableColumns](x, "describe_schema", in); got.Table != "shop_order" || len(got.Columns) != 1 {
				t.Errorf("%s is described as %s", name, text(got))
			}
			if got := call[query.TableDDL](x, "get_ddl", in); !strings.HasPrefix(got.DDL, "CREATE TABLE `shop_order`") {
				t.Errorf("%s is defined as %s", name, got.DDL)
			}
			if r, err := x.raw(t.Context(), "execute_read_sql", map[string]string{"sql": "SELECT COUNT(*) FROM " + name}); err != nil ||
				!strings.Contains(string(r.Data), `"rows":[[1]]`) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if said := x.refused("get_ddl", `{"table": "SHOP_VIEW"}`, fault.NotFound); !strings.Contains(said.Message, "is a view") {
			t.Errorf("of a view it says %s", said.Message)
		}
		if said := x.refused("get_ddl", `{"table": "Shop_Oder"}`, fault.NotFound); !strings.Contains(said.Message, "shop_order") {
			t.Errorf("of a table that is not there it says %s", said.Message)
		}
		for _, closed := range []string{"MySQL.user", "PERFORMANCE_SCHEMA.threads", "Sys.version", "Information_Schema.PROCESSLIST"} {
			x.refused("execute_read_sql", map[string]string{"sql": "SELECT * FROM " + closed}, fault.Validation)
		}
	})
}
