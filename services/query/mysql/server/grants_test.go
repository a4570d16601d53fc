package server

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
)

func TestJudgeGrant(t *testing.T) {
	for _, c := range []struct {
		line      string
		privilege string   // refused for; empty when allowed
		roles     []string // to look into
	}{
		{line: "GRANT USAGE ON *.* TO `hub_ro`@`%` IDENTIFIED BY PASSWORD '*ABC'"},
		{line: "GRANT SELECT, SHOW VIEW ON `shop\\_1`.* TO `hub_ro`@`%`"},
		{line: "GRANT SELECT ON *.* TO 'hub_ro'@'10.%' REQUIRE SSL WITH MAX_USER_CONNECTIONS 5 MAX_STATEMENT_TIME 0.500000"},
		{line: "GRANT SELECT (`a`, `insert`, `b`) ON `shop`.`t` TO `hub_ro`@`%`"},
		{line: `GRANT SELECT ON "shop".* TO "hub_ro"@"%"`}, // MySQL with ANSI_QUOTES
		{line: "REVOKE SELECT ON `mysql`.* FROM `hub_ro`@`%`"},
		{line: "SET DEFAULT ROLE `reader` FOR `hub_ro`@`%`"},
		{line: "grant select on `a``b`.* to `hub_ro`@`%`"},
		{line: "GRANT SELECT ON `grant option`.* TO `hub_ro`@`%`"},
		{line: "GRANT SELECT ON `s`.* TO `with grant option`@`%`"},

		{line: "GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION", privilege: "ALL PRIVILEGES"},
		{line: "GRANT SELECT, INSERT ON `shop`.* TO `hub_ro`@`%`", privilege: "INSERT"},
		{line: "GRANT SELECT (`a`), UPDATE (`b`) ON `shop`.`t` TO `hub_ro`@`%`", privilege: "UPDATE (`b`)"},
		{line: "GRANT SELECT, CREATE TEMPORARY TABLES ON `shop`.* TO `hub_ro`@`%`", privilege: "CREATE TEMPORARY TABLES"},
		{line: "GRANT FILE ON *.* TO `hub_ro`@`%`", privilege: "FILE"},
		{line: "GRANT PROCESS ON *.* TO `hub_ro`@`%`", privilege: "PROCESS"},
		{line: "GRANT LOCK TABLES ON `shop`.* TO `hub_ro`@`%`", privilege: "LOCK TABLES"},
		{line: "GRANT EXECUTE ON PROCEDURE `shop`.`p` TO `hub_ro`@`%`", privilege: "EXECUTE"},
		{line: "GRANT EXECUTE ON FUNCTION `shop`.`f_net` TO `hub_ro`@`%`"},
		{line: "GRANT EXECUTE ON FUNCTION `SHOP`.`f_VAT` TO `hub_ro`@`%`"},
		{line: "GRANT EXECUTE ON FUNCTION `other`.`f_vat` TO `hub_ro`@`%`", privilege: "EXECUTE"},
		{line: "GRANT EXECUTE ON PROCEDURE `shop`.`f_net` TO `hub_ro`@`%`", privilege: "EXECUTE"},
		{line: "GRANT EXECUTE ON `function`.`f_net` TO `hub_ro`@`%`", privilege: "EXECUTE"},
		{line: "GRANT EXECUTE, ALTER ROUTINE ON FUNCTION `shop`.`f_net` TO `hub_ro`@`%`", privilege: "ALTER ROUTINE"},
		{line: "GRANT EXECUTE ON FUNCTION `shop`.`f_net` TO `hub_ro`@`%` WITH GRANT OPTION", privilege: "GRANT OPTION"},
		{line: "GRANT SELECT ON `shop`.* TO `hub_ro`@`%` WITH GRANT OPTION", privilege: "GRANT OPTION"},
		{line: "GRANT USAGE ON *.* TO `hub_ro`@`%` WITH GRANT OPTION", privilege: "GRANT OPTION"},
		{line: "GRANT PROXY ON ''@'%' TO 'root'@'localhost' WITH GRANT OPTION", privilege: "PROXY"},
		{line: "GRANT PROXY ON `a`@`%` TO `hub_ro`@`%`", privilege: "PROXY"},
		{line: "GRANT BACKUP_ADMIN,CONNECTION_ADMIN ON *.* TO `hub_ro`@`%`", privilege: "BACKUP_ADMIN"},
		{line: "GRANT SELECT ON `s`.* TO `hub_ro`@`%`, x WITH ADMIN OPTION", privilege: "ADMIN OPTION"},
		{line: "ALLOW EVERYTHING", privilege: "a right that Hub cannot read (ALLOW …)"},
		{line: "GRANT SOMETHING NEW", privilege: "a right that Hub cannot read"},

		{line: "GRANT `reader` TO `hub_ro`@`%`", roles: []string{"`reader`"}},
		{line: "GRANT reader TO 'hub_ro'@'%'", roles: []string{"`reader`"}},
		{line: "GRANT `r1`@`%`,`to`@`localhost` TO `hub_ro`@`%`", roles: []string{"`r1`@`%`", "`to`@`localhost`"}},
		{line: "GRANT `reader` TO `hub_ro`@`%` WITH ADMIN OPTION", privilege: "ADMIN OPTION"},
	} {
		j := judge{account: "`hub_ro`@`%`", functions: []string{"f_net", "shop.f_vat"}}
		roles := j.line(c.line, "")
		var rights []string
		for _, f := range j.findings {
			rights = append(rights, f.Rights...)
		}
		if (rights != nil) != (c.privilege != "") || rights != nil && rights[0] != c.privilege {
			t.Errorf("%s: refused for %q, want %q", c.line, rights, c.privilege)
		}
		if c.privilege != "ADMIN OPTION" && !slices.Equal(roles, c.roles) {
			t.Errorf("%s: roles %q, want %q", c.line, roles, c.roles)
		}
	}
}

func TestWhatMendsAGrant(t *testing.T) {
	for _, c := range []struct {
		dialect    Dialect
		line, role string
		want       string // statements
	}{
		{MariaDB, "GRANT SELECT, INSERT, CREATE ROUTINE, SHOW VIEW ON `shop`.* TO `u`@`%`", "",
			"REVOKE INSERT, CREATE ROUTINE ON `shop`.* FROM `u`@`%`"},
		{MariaDB, "GRANT SELECT (`a`), UPDATE (`b`, `c`) ON `shop`.`t` TO `u`@`%`", "", "REVOKE UPDATE (`b`, `c`) ON `shop`.`t` FROM `u`@`%`"},
		{MariaDB, "GRANT EXECUTE ON PROCEDURE `shop`.`p` TO `u`@`%`", "", "REVOKE EXECUTE ON PROCEDURE `shop`.`p` FROM `u`@`%`"},
		{MySQL, "GRANT EXECUTE ON FUNCTION shop.p TO 'u'@'%'", "", "REVOKE EXECUTE ON FUNCTION shop.p FROM `u`@`%`"},
		{MariaDB, "GRANT ALL PRIVILEGES ON `sh\\_op`.* TO `u`@`%`", "",
			"REVOKE ALL PRIVILEGES ON `sh\\_op`.* FROM `u`@`%`; GRANT SELECT, SHOW VIEW ON `sh\\_op`.* TO `u`@`%`"},
		// Nobody should read everything: mysql.global_priv has the hashes of passwords.
		{MariaDB, "GRANT ALL PRIVILEGES ON *.* TO `u`@`%` WITH GRANT OPTION", "",
			"REVOKE ALL PRIVILEGES ON *.* FROM `u`@`%`; REVOKE GRANT OPTION ON *.* FROM `u`@`%`"},
		{MySQL, "GRANT PROXY ON ``@`` TO `u`@`%` WITH GRANT OPTION", "", "REVOKE PROXY ON ``@`` FROM `u`@`%`"},
		{MariaDB, "GRANT SELECT, DELETE, CREATE ON `test`.* TO PUBLIC", "PUBLIC", "REVOKE ALL PRIVILEGES ON `test`.* FROM PUBLIC"},
		{MariaDB, "GRANT SELECT, DELETE ON `test\\_%`.* TO PUBLIC WITH GRANT OPTION", "PUBLIC",
			"REVOKE ALL PRIVILEGES ON `test\\_%`.* FROM PUBLIC; REVOKE GRANT OPTION ON `test\\_%`.* FROM PUBLIC"},
		{MariaDB, "GRANT SELECT, DELETE ON `shop`.* TO `writer`", "`writer`", "REVOKE `writer` FROM `u`@`%`"},
		{MySQL, "GRANT SELECT, DELETE ON `shop`.* TO `u`@`%`", "`writer`@`%`", "REVOKE `writer`@`%` FROM `u`@`%`"},
		{MariaDB, "GRANT `r` TO `u`@`%` WITH ADMIN OPTION", "", "REVOKE ADMIN OPTION FOR `r` FROM `u`@`%`"},
		{MySQL, "GRANT `r`@`%` TO `u`@`%` WITH ADMIN OPTION", "", "REVOKE `r`@`%` FROM `u`@`%`; GRANT `r`@`%` TO `u`@`%`"},
		{MariaDB, "ALLOW EVERYTHING", "", ""},
	} {
		j := judge{dialect: c.dialect, account: quoteAccount("u@%")}
		j.line(c.line, c.role)
		var got []string
		for _, f := range j.findings {
			got = append(got, f.Mend...)
		}
		if len(j.findings) == 0 || strings.Join(got, "; ") != c.want {
			t.Errorf("%s\n is mended by %s\n        want %s", c.line, strings.Join(got, "; "), c.want)
		}
	}
	if got := quoteAccount("a@b`c@10.%"); got != "`a@b``c`@`10.%`" {
		t.Errorf("an account of many marks is %s", got)
	}
	several := &GrantsError{[]Finding{{Rights: []string{"DELETE", "INSERT"}, Role: "`w`", Mend: []string{"REVOKE `w` FROM `u`"}},
		{Rights: []string{"DROP"}, Role: "`w`", Mend: []string{"REVOKE `w` FROM `u`"}}}}
	if text := several.Error(); strings.Count(text, "REVOKE") != 1 || strings.Contains(text, "\n") ||
		!strings.Contains(text, "DELETE, INSERT through the role `w`; and DROP") {
		t.Error(text)
	}
}

func TestGrantsOfRealUsers(t *testing.T) {
	hubtest.SourceServers(t, grantsOfRealUsers)
}

func grantsOfRealUsers(t *testing.T, server *localserver.SourceServer) {
	version, err := server.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dialect, setDefault := dialectOf(version), "SET DEFAULT ROLE role_writes FOR %s"
	if dialect == MySQL {
		setDefault = "SET DEFAULT ROLE role_writes TO %s"
	}
	admin, err := server.Admin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	exec := func(statements ...string) {
		t.Helper()
		for _, q := range statements {
			if _, err := admin.ExecContext(t.Context(), q); err != nil {
				t.Fatalf("%s: %v", q, err)
			}
		}
	}
	exec("CREATE DATABASE grants_a", "CREATE TABLE grants_a.t (a INT, b INT)", "CREATE PROCEDURE grants_a.p() SELECT 1",
		"CREATE FUNCTION grants_a.f() RETURNS INT NO SQL RETURN 1", "CREATE FUNCTION grants_a.g() RETURNS INT NO SQL RETURN 1",
		"CREATE ROLE role_reads", "GRANT SELECT ON grants_a.* TO role_reads",
		"CREATE ROLE role_writes", "GRANT SELECT, DELETE ON grants_a.* TO role_writes",
		"CREATE ROLE role_nested", "GRANT role_writes TO role_nested")
	t.Cleanup(func() {
		for _, q := range []string{"DROP DATABASE grants_a", "DROP ROLE role_reads, role_writes, role_nested"} {
			if _, err := admin.Exec(q); err != nil {
				t.Error(err)
			}
		}
	})
	cases := []struct {
		name   string
		grants []string // %s is the user
		want   []string // parts of the error; none when allowed
	}{
		{"nothing", nil, nil},
		{"select", []string{"GRANT SELECT, SHOW VIEW ON grants_a.* TO %s"}, nil},
		{"select everywhere", []string{"GRANT SELECT ON *.* TO %s"}, nil},
		{"columns", []string{"GRANT SELECT (a) ON grants_a.t TO %s"}, nil},
		{"reading role", []string{"GRANT role_reads TO %s"}, nil},
		{"limits", []string{"GRANT SELECT ON grants_a.* TO %s", "ALTER USER %s WITH MAX_USER_CONNECTIONS 9"}, nil},
		{"insert", []string{"GRANT SELECT, INSERT ON grants_a.* TO %s"}, []string{"INSERT", "grants_a"}},
		{"all", []string{"GRANT ALL ON grants_a.* TO %s"}, []string{"ALL PRIVILEGES", "grants_a"}},
		{"update of a column", []string{"GRANT SELECT (a), UPDATE (b) ON grants_a.t TO %s"}, []string{"UPDATE"}},
		{"file", []string{"GRANT FILE ON *.* TO %s"}, []string{"FILE", "*.*"}},
		{"execute", []string{"GRANT EXECUTE ON PROCEDURE grants_a.p TO %s"}, []string{"EXECUTE"}},
		{"execute of a function that is named", []string{"GRANT EXECUTE ON FUNCTION grants_a.f TO %s"}, nil},
		{"execute of another function", []string{"GRANT EXECUTE ON FUNCTION grants_a.g TO %s"}, []string{"EXECUTE", "grants_a"}},
		{"temporary tables", []string{"GRANT CREATE TEMPORARY TABLES ON grants_a.* TO %s"}, []string{"CREATE TEMPORARY TABLES"}},
		{"grant option", []string{"GRANT SELECT ON grants_a.* TO %s WITH GRANT OPTION"}, []string{"GRANT OPTION"}},
		{"proxy", []string{"GRANT PROXY ON ''@'%%' TO %s"}, []string{"PROXY"}},
		{"writing role", []string{"GRANT role_writes TO %s"}, []string{"DELETE", "role", "role_writes"}},
		{"role in a role", []string{"GRANT role_nested TO %s"}, []string{"DELETE", "role", "role_nested"}},
		{"default role", []string{"GRANT role_writes TO %s", setDefault}, []string{"DELETE"}},
		{"role with admin option", []string{"GRANT role_reads TO %s WITH ADMIN OPTION"}, []string{"ADMIN OPTION"}},
		{"several", []string{"GRANT SELECT, INSERT ON grants_a.* TO %s", "GRANT UPDATE (b) ON grants_a.t TO %s", "GRANT FILE ON *.* TO %s",
			"GRANT role_writes TO %s"},
			[]string{"INSERT", "UPDATE (`b`)", "FILE", "role_writes"}},
	}
	if dialect == MySQL {
		cases = append(cases, []struct {
			name   string
			grants []string
			want   []string
		}{
			{"roles active at log-in", []string{"GRANT role_writes TO %s", "SET GLOBAL activate_all_roles_on_login = ON"},
				[]string{"DELETE", "through the role", "REVOKE `role_writes`@`%` FROM"}},
			{"a role of everybody's", []string{"SET PERSIST mandatory_roles = 'role_reads,`role_writes`@`%%`'"},
				[]string{"DELETE", "SET PERSIST mandatory_roles = '`role_reads`@`%`'"}},
			{"administration", []string{"GRANT SYSTEM_VARIABLES_ADMIN, BACKUP_ADMIN ON *.* TO %s"}, []string{"BACKUP_ADMIN"}},
		}...)
		t.Cleanup(func() {
			for _, q := range []string{"SET GLOBAL activate_all_roles_on_login = OFF", "SET PERSIST mandatory_roles = ''"} {
				if _, err := admin.Exec(q); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			user := fmt.Sprintf("grants_%d", i)
			exec("CREATE USER " + user + "@'%' IDENTIFIED BY 'pw'")
			t.Cleanup(func() { admin.Exec("DROP USER " + user + "@'%'") })
			for _, g := range c.grants {
				exec(strings.NewReplacer("%s", user+"@'%'", "%%", "%").Replace(g))
			}
			db, err := sql.Open("mysql", server.DSN(user, "pw", ""))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			everything, err := checkGrants(t.Context(), db, dialect, []string{"grants_a.f"}, false)
			if len(c.want) == 0 {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				if everything != (c.name == "select everywhere") {
					t.Errorf("may read everything: %t", everything)
				}
				return
			}
			var over *GrantsError
			if !errors.As(err, &over) {
				t.Fatalf("got %v, want a GrantsError of %q", err, c.want)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not name %q", err, part)
				}
			}
			// Whoever runs what the error says is served, and keeps what they may read.
			for _, f := range over.Findings {
				exec(f.Mend...)
			}
			if _, err := checkGrants(t.Context(), db, dialect, nil, false); err != nil {
				t.Errorf("mended by %v, and still refused: %v", over.Findings, err)
			}
		})
	}
}

// TestGrantsOfEverybody is a stock MariaDB: it lets each account write to the schema test.
func TestGrantsOfEverybody(t *testing.T) {
	server := hubtest.NewMariaDB(t)
	admin, err := server.Admin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	exec := func(statements ...string) {
		t.Helper()
		for _, q := range statements {
			if _, err := admin.ExecContext(t.Context(), q); err != nil {
				t.Fatalf("%s: %v", q, err)
			}
		}
	}
	const all = "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, LOCK TABLES, " +
		"CREATE VIEW, CREATE ROUTINE, SHOW VIEW, EVENT, TRIGGER ON "
	exec("CREATE DATABASE shop", all+"`test`.* TO PUBLIC", all+"`test\\_%`.* TO PUBLIC", "CREATE USER reader@'%' IDENTIFIED BY 'pw'",
		"GRANT SELECT ON shop.* TO reader@'%'")
	db, err := sql.Open("mysql", server.DSN("reader", "pw", "shop"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	_, err = checkGrants(t.Context(), db, MariaDB, nil, false)
	var over *GrantsError
	if !errors.As(err, &over) || !strings.Contains(err.Error(),
		"INSERT, UPDATE, DELETE, CREATE and 10 more rights on `test`.* through the role PUBLIC; and ") ||
		!strings.Contains(err.Error(), "REVOKE ALL PRIVILEGES ON `test`.* FROM PUBLIC; REVOKE ALL PRIVILEGES ON `test\\_%`.* FROM PUBLIC;") {
		t.Fatalf("got %v", err)
	}
	for _, f := range over.Findings {
		exec(f.Mend...)
	}
	if _, err = checkGrants(t.Context(), db, MariaDB, nil, false); err != nil {
		t.Errorf("mended, and still refused: %v", err)
	}
}
