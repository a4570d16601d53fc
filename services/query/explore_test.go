package query_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/services/query"
)

const oddTables = `
CREATE TABLE ` + "`a``b; DROP TABLE brand`" + ` (x INT);
CREATE TABLE ` + "`select`" + ` (x INT);
CREATE TABLE ` + "`Großer Käse`" + ` (x INT);
CREATE VIEW brand_view AS SELECT brand_id FROM brand;
CREATE TABLE odd (
  id        INT UNSIGNED NOT NULL AUTO_INCREMENT,
  flag      TINYINT(1) NOT NULL DEFAULT 0,
  small     SMALLINT(4) UNSIGNED NULL,
  padded    INT(7) ZEROFILL NOT NULL,
  none      VARCHAR(20) NOT NULL,
  nothing   VARCHAR(20) NULL,
  ` + "`empty`" + `   VARCHAR(20) NOT NULL DEFAULT '',
  word      VARCHAR(20) NULL DEFAULT 'NULL',
  quoted    VARCHAR(40) NOT NULL DEFAULT 'it''s "a" \\ %',
  amount    DECIMAL(10,2) NOT NULL DEFAULT 1.50,
  made      DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  twice     INT AS (flag * 2) STORED COMMENT 'computed; "quoted"',
  PRIMARY KEY (id),
  UNIQUE KEY uq (word, flag),
  KEY part (quoted(5)),
  FULLTEXT KEY ft (quoted)
) COMMENT='Odd: it''s all here'`

func TestDescribeSchema(t *testing.T) {
	x := serve(t, oddTables, `INSERT INTO category VALUES (12, 0, 1), (13, 0, 2), (14, 0, 3)`, `ANALYZE TABLE category`)
	list := call[query.SchemaTables](x, "describe_schema", `{}`)
	var names []string
	for _, table := range list.Tables {
		names = append(names, table.Name+" "+table.Audience)
		if table.Description == "" {
			t.Errorf("%s has no description", table.Name)
		}
	}
	if got, want := strings.Join(
		names,
		", ",
	), "category B2B, category_name B2B, partner B2B, partner_admin B2B, brand B2B, campaign B2B, deposit_transaction B2B, member B2C, "+
		"campaign_application B2C, review B2C"; got != want {
		t.Errorf("tables %s\nwant %s", got, want)
	}
	if n := list.Tables[0].ApproxRows; n != 3 {
		t.Errorf("category has about %d rows, want 3", n)
	}
	if a, b := text(call[query.SchemaTables](x, "describe_schema", `{"table": ""}`)), text(list); a != b {
		t.Errorf("an empty table answers %s, want the list", a)
	}

	odd := call[query.TableColumns](x, "describe_schema", `{"table": "odd"}`)
	if odd.Table != "odd" || odd.Comment != "Odd: it's all here" {
		t.Errorf("table %q, comment %q", odd.Table, odd.Comment)
	}
	wants := []query.Column{
		{Name: "id", Type: "int unsigned", Key: "PRI", Extra: "auto_increment"},
		{Name: "flag", Type: "tinyint(1)", Default: ptr("0")},
		{Name: "small", Type: "smallint unsigned", Nullable: true},
		{Name: "padded", Type: "int(7) unsigned zerofill"},
		{Name: "none", Type: "varchar(20)"},
		{Name: "nothing", Type: "varchar(20)", Nullable: true},
		{Name: "empty", Type: "varchar(20)", Default: ptr("")},
		{Name: "word", Type: "varchar(20)", Nullable: true, Key: "MUL", Default: ptr("NULL")},
		{Name: "quoted", Type: "varchar(40)", Key: "MUL", Default: ptr(`it's "a" \ %`)},
		{Name: "amount", Type: "decimal(10,2)", Default: ptr("1.50")},
		{Name: "made", Type: "datetime", Default: ptr("current_timestamp()"), Extra: "on update current_timestamp()"},
		{Name: "twice", Type: "int", Nullable: true, Extra: "STORED GENERATED", Comment: `computed; "quoted"`},
	}
	if hubtest.SourceIsMySQL() { // in its own words
		wants[10].Default, wants[10].Extra = ptr("CURRENT_TIMESTAMP"), "DEFAULT_GENERATED on update CURRENT_TIMESTAMP"
	}
	equal(t, "odd", odd.Columns, wants)
}

func TestTableNames(t *testing.T) {
	x := serve(t, oddTables)
	for _, name := range []string{"a`b; DROP TABLE brand", "select", "Großer Käse", "odd"} {
		in := map[string]string{"table": name}
		if got := call[query.TableColumns](x, "describe_schema", in); got.Table != name {
			t.Errorf("%q describes %q", name, got.Table)
		}
		got := call[query.TableDDL](x, "get_ddl", in)
		if want := "CREATE TABLE `" + strings.ReplaceAll(name, "`", "``") + "`"; !strings.HasPrefix(got.DDL, want) {
			t.Errorf("%q has DDL %q", name, got.DDL)
		}
	}
	for _, name := range []string{
		"nothing_here", "brand_view", "`brand`", "mysql.user", "information_schema.tables", "TABLES", "columns", "brand ", " brand", "brand;",
		"brand--", "brand' OR '1'='1", "brand\x00", "bränd", "%", "brand%", "_____",
		"brand` WHERE 1=1; DROP TABLE campaign; -- ", "../brand", "Grosser Kase", strings.Repeat("x", 5000), "🧴",
	} {
		in := map[string]string{"table": name}
		x.refused("describe_schema", in, fault.NotFound)
		x.refused("get_ddl", in, fault.NotFound)
	}
	if said := x.refused("describe_schema", `{"table": "brand_view"}`, fault.NotFound); !strings.Contains(said.Message, "is a view") {
		t.Errorf("of a view it says %s", said.Message)
	}
	// A name of the own schema in front is not a table's name either.
	var schema string
	if err := x.admin.QueryRow("SELECT DATABASE()").Scan(&schema); err != nil {
		t.Fatal(err)
	}
	x.refused("get_ddl", map[string]string{"table": schema + ".brand"}, fault.NotFound)
	// The case of a name is the server's to judge.
	var folded int
	if err := x.admin.QueryRow("SELECT @@lower_case_table_names").Scan(&folded); err != nil {
		t.Fatal(err)
	}
	if r, err := x.raw(
		t.Context(),
		"describe_schema",
		`{"table": "BRAND"}`,
	); err == nil &&
		!strings.Contains(string(r.Data), `"table":"brand"`) {
		t.Errorf("BRAND answers %s", r.Data)
	} else if err != nil &&
		(folded != 0 || !fault.Is(err, fault.NotFound)) {
		t.Errorf("BRAND: %v", err)
	}
}

func TestGetDDL(t *testing.T) {
	x := serve(t, oddTables)
	list := call[query.DDLTables](x, "get_ddl", `{}`)
	crm, others := 0, []string{}
	for _, table := range list.Tables {
		if table.PrimaryCRM {
			crm++
		} else {
			others = append(others, table.Name)
		}
	}
	if want := []string{
		"Großer Käse",
		"a`b; DROP TABLE brand",
		"odd",
		"select",
	}; crm != 10 ||
		!slices.Equal(slices.Sorted(slices.Values(others)), want) {
		t.Errorf("%d CRM tables and %q, want 10 and %q", crm, others, want)
	}

	whole := call[query.TableDDL](x, "get_ddl", `{"table": "odd"}`)
	equal(t, "odd", whole.Indexes, []query.Index{
		{Name: "PRIMARY", Unique: true, Type: "BTREE", Columns: []string{"id"}},
		{Name: "ft", Type: "FULLTEXT", Columns: []string{"quoted"}},
		{Name: "part", Type: "BTREE", Columns: []string{"quoted(5)"}},
		{Name: "uq", Unique: true, Type: "BTREE", Columns: []string{"word", "flag"}},
	})
	r, err := x.raw(t.Context(), "get_ddl", `{"table": "odd", "includeIndexes": false}`)
	if err != nil {
		t.Fatal(err)
	}
	var without map[string]any
	if err := json.Unmarshal(r.Data, &without); err != nil {
		t.Fatal(err)
	}
	if _, present := without["indexes"]; present || without["ddl"] != whole.DDL || r.Count != 12 {
		t.Errorf("without indexes: count %d, %s", r.Count, r.Data)
	}
	// A table without an index has an empty list, not none.
	if r, err := x.raw(t.Context(), "get_ddl", `{"table": "select"}`); err != nil || !strings.Contains(string(r.Data), `"indexes":[]`) {
		t.Errorf("select: %s, %v", r.Data, err)
	}
}

// TestOtherSource is the service on a database that is not the marketplace's.
func TestOtherSource(t *testing.T) {
	x := serve(
		t,
		`DROP TABLE review, campaign_application, member, deposit_transaction, campaign, brand, partner_admin, category_name, category;
			CREATE TABLE notes (id INT PRIMARY KEY);
		ALTER TABLE partner DROP COLUMN business_no, COMMENT='Dance partner'`,
	)
	if got, want := text(
		call[query.SchemaTables](x, "describe_schema", `{}`),
	), `{"tables":[{"name":"partner","audience":"B2B","description":"Dance partner","approx_rows":0}]}`; got != want {
		t.Errorf("CRM tables %s, want %s", got, want)
	}
	if got := call[query.DDLTables](x, "get_ddl", `{}`); len(got.Tables) != 2 {
		t.Errorf("tables %v", got)
	}
	call[query.TableDDL](x, "get_ddl", `{"table": "notes"}`)
	for _, c := range []struct{ name, input, names string }{
		{"list_categories", `{}`, "category"},
		{"search_brands", `{}`, "campaign"},
		{"search_brands", `{"categoryId": 12}`, "category"},
		{"get_brand", `{"brandId": 1}`, "brand"},
		{"search_campaigns", `{}`, "campaign"},
		{"search_campaigns", `{"partnerId": 1}`, "campaign"},
		{"search_partner_contacts", `{"partnerId": 1}`, "partner_admin"},
		{"get_campaign_performance", `{"campaignId": 1}`, "campaign"},
	} {
		if f := x.refused(c.name, c.input, fault.NotFound); !strings.Contains(f.Message, `"`+c.names) {
			t.Errorf("%s %s does not name the table %s: %s", c.name, c.input, c.names, f.Message)
		}
	}
	// A table of that name with other columns.
	x.exec(`CREATE TABLE partner_admin (id INT)`)
	if f := x.refused("search_partner_contacts", `{"partnerId": 1}`, fault.NotFound); !strings.Contains(f.Message, "Unknown column") {
		t.Errorf("other columns: %s", f.Message)
	}
}

// TestHiddenTables is a source whose account may read some tables alone.
func TestHiddenTables(t *testing.T) {
	x := serve(t)
	admin, err := hubtest.SourceServer(t).Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	var schema string
	if err := x.admin.QueryRow("SELECT DATABASE()").Scan(&schema); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"CREATE USER few IDENTIFIED BY 'few'", "GRANT SELECT ON " + schema + ".partner TO few", "GRANT SELECT ON " +
		schema + ".category_name TO few"} {
		if _, err := admin.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	defer admin.Exec("DROP USER few")
	x.open(hubtest.SourceServer(t).DSN("few", "few", schema))
	if got := call[query.SchemaTables](x, "describe_schema", `{}`); len(got.Tables) != 2 {
		t.Errorf("tables %v, want the two that may be read", got)
	}
	if f := x.refused("search_campaigns", `{}`, fault.NotFound); !strings.Contains(f.Message, `"campaign"`) {
		t.Errorf("the message does not name the table: %s", f.Message)
	}
	x.refused("get_ddl", `{"table": "brand"}`, fault.NotFound)
}

// TestDescriptionsAreTheSchemas compares the curated list with the source's own words.
func TestDescriptionsAreTheSchemas(t *testing.T) {
	x := serve(t)
	rows, err := os.ReadFile("table.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range call[query.SchemaTables](x, "describe_schema", `{}`).Tables {
		if !strings.Contains(string(rows), `"`+table.Description+`"`) {
			t.Errorf("%s is described as %q", table.Name, table.Description)
		}
	}
}
