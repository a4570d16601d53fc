package localserver

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Chromium is the package of the browser that tests look at pages with: they alone need it.
const Chromium = "chromium-headless-shell"

// Buildah is the package of the program that makes images without an engine: `make image` and its test need it where there is no Docker.
const Buildah = "buildah"

// PgBouncer is the package of the pooler that tests put in front of PostgreSQL: they alone need it.
const PgBouncer = "pgbouncer"

// DNSServer is the package of the DNS server that tests of discovery ask: they alone need it.
const DNSServer = "dnsmasq-base"

// packages maps each program to its Debian or Ubuntu package and the check that it is there.
var packages = []struct {
	name string
	// server tells that the local stack needs it.
	server  bool
	present func() error
}{
	{"mariadb-server", true, func() error {
		if _, err := find("mariadbd", "mysqld"); err != nil {
			return err
		}
		_, err := find("mariadb-install-db", "mysql_install_db")
		return err
	}},
	{"postgresql", true, func() error { _, err := postgresPrograms(""); return err }},
	{"redis-server", true, func() error { _, err := find("redis-server"); return err }},
	{Buildah, false, func() error { _, err := find("buildah"); return err }},
	{PgBouncer, false, func() error { _, err := find("pgbouncer"); return err }},
	{DNSServer, false, func() error { _, err := find("dnsmasq"); return err }},
	{Chromium, false, func() error { _, err := ChromiumPath(); return err }},
}

// Missing lists the packages that this machine lacks: of the servers, and of those that are
// named beside them.
func Missing(also ...string) (names []string) {
	for _, p := range packages {
		if (p.server || slices.Contains(also, p.name)) && p.present() != nil {
			names = append(names, p.name)
		}
	}
	return names
}

// Install installs what Missing lists with apt-get, as root or through sudo. Progress lines
// and apt's own output go to progress.
func Install(ctx context.Context, progress io.Writer, also ...string) error {
	missing := Missing(also...)
	if len(missing) == 0 {
		return nil
	}
	list := strings.Join(missing, " ")
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return fmt.Errorf("missing programs: install %s with this system's package manager (apt-get is not here)", list)
	}
	// No question is asked, and another apt that runs is waited for, five minutes at most.
	prefix := []string{"env", "DEBIAN_FRONTEND=noninteractive", apt, "-o", "DPkg::Lock::Timeout=300", "-q"}
	if os.Geteuid() != 0 {
		if _, err := exec.LookPath("sudo"); err != nil {
			return fmt.Errorf("missing programs: as root, run: apt-get install --no-install-recommends %s", list)
		}
		prefix = append([]string{"sudo"}, prefix...)
	}
	for _, step := range [][]string{
		{"update"},
		append([]string{"install", "-y", "--no-install-recommends"}, missing...),
	} {
		fmt.Fprintf(progress, "apt-get %s\n", strings.Join(step, " "))
		if err := run(ctx, progress, nil, prefix[0], slices.Concat(prefix[1:], step)...); err != nil {
			return err
		}
	}
	if still := Missing(also...); len(still) > 0 {
		return fmt.Errorf("apt-get ended well but these programs are still not found: %s", strings.Join(still, " "))
	}
	return nil
}
