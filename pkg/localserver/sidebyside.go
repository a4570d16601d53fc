package localserver

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// SideBySide is a server of the distribution's next release, unpacked into a cache folder beside the system, whose own version
// stays what it is. It is not installed, which would replace the system's libc: its files come with all the libraries that
// they need, and its own loader starts it, as any user. Tests use it, and a local stack that asks for MySQL.
type SideBySide struct {
	Name    string // such as MySQL
	Package string // its package in that release
	program string // below the folder
}

// The servers that are unpacked beside the system.
var (
	SideBySideMySQL   = SideBySide{Name: "MySQL", Package: "mysql-server-core", program: "usr/sbin/mysqld"}
	SideBySideMariaDB = SideBySide{Name: "MariaDB", Package: "mariadb-server-core", program: "usr/sbin/mariadbd"}

	SideBySidePostgres  = SideBySide{Name: "PostgreSQL", Package: "postgresql-18", program: "usr/lib/postgresql/18/bin/postgres"}
	SideBySidePgBouncer = SideBySide{Name: "PgBouncer", Package: "pgbouncer", program: "usr/sbin/pgbouncer"}
	SideBySideHAProxy   = SideBySide{Name: "HAProxy", Package: "haproxy", program: "usr/sbin/haproxy"}
	SideBySideValkey    = SideBySide{Name: "Valkey", Package: "valkey-server", program: "usr/bin/valkey-server"}
)

// SideBySideServers lists them.
func SideBySideServers() []SideBySide {
	return append([]SideBySide{SideBySideMySQL, SideBySideMariaDB, SideBySideHAProxy}, SideBySideStores()...)
}

// SideBySideStores lists those that Options.Beside starts.
func SideBySideStores() []SideBySide {
	return []SideBySide{SideBySidePostgres, SideBySidePgBouncer, SideBySideValkey}
}

// nextRelease is the suite of Debian in which the newest versions stand.
const nextRelease = "sid"

// sideBySideCache is where the servers are unpacked, outside any clone. Root's own cache is closed to the users that servers run
// as under root.
func sideBySideCache() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/hub/servers", nil
	}
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "hub", "servers"), err
}

// Root is the folder of the newest version that was unpacked. The error is one line that says what is missing.
func (b SideBySide) Root() (string, error) {
	cache, err := sideBySideCache()
	if err != nil {
		return "", err
	}
	folders, _ := filepath.Glob(filepath.Join(cache, b.Package+"_*")) // the pattern is valid
	folders = slices.DeleteFunc(folders, func(folder string) bool { return !executable(filepath.Join(folder, b.program)) })
	if len(folders) == 0 {
		return "", fmt.Errorf("no %s of Debian's next release (%s) in %s: `make servers` fetches it", b.Name, b.Package, cache)
	}
	return slices.MaxFunc(folders, func(a, c string) int { return cmp.Compare(unpackedAt(a), unpackedAt(c)) }), nil
}

// folderVersion is in the name that NextRelease.Fetch gives a folder: PACKAGE_EPOCH-VERSION-REVISION_ARCHITECTURE, mostly without an epoch.
var folderVersion = regexp.MustCompile(`_(?:\d+-)?(\d+(?:\.\d+)+)[^_]*_[^_]*$`)

// Version is the newest version that was unpacked, as 18.6. The error is Root's.
func (b SideBySide) Version() (string, error) {
	root, err := b.Root()
	if err != nil {
		return "", err
	}
	found := folderVersion.FindStringSubmatch(filepath.Base(root))
	if found == nil {
		return "", fmt.Errorf("%s tells no version", root)
	}
	return found[1], nil
}

// unpackedAt is when a folder was made, in nanoseconds since 1970.
func unpackedAt(folder string) int64 {
	info, err := os.Stat(folder)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

// command is the server's program under its own loader, which finds its own libraries, and the folder that all lie in.
func (b SideBySide) command() (root string, argv []string, err error) {
	if root, err = b.Root(); err != nil {
		return "", nil, err
	}
	loaders, _ := filepath.Glob(filepath.Join(root, "usr", "lib*", "ld-linux-*.so.*")) // the patterns are valid
	libraries, _ := filepath.Glob(filepath.Join(root, "usr", "lib", "*-linux-gnu"))
	if len(loaders) == 0 || len(libraries) == 0 {
		return "", nil, fmt.Errorf("%s has no loader of its own: remove the folder, and fetch it anew with `make servers`", root)
	}
	path := libraries[0] + ":" + filepath.Join(libraries[0], "systemd")
	return root, []string{loaders[0], "--library-path", path, filepath.Join(root, b.program)}, nil
}

// A NextRelease is what a mirror has of the distribution's next release, as apt has read it once for all that is fetched.
// Close removes it.
type NextRelease struct{ cache, work string }

// ReadNextRelease has apt read what the mirror has that this machine's own sources name. It needs no rights. Progress goes to
// progress.
// apt checks the signatures of what it downloads by the mirror's own key; nothing is installed, and no script of a
// package runs.
func ReadNextRelease(ctx context.Context, progress io.Writer) (*NextRelease, error) {
	source, err := debianSource("/etc/apt")
	if err != nil {
		return nil, err
	}
	cache, err := sideBySideCache()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp(cache, "fetching-")
	if err != nil {
		return nil, err
	}
	n := &NextRelease{cache: cache, work: work}
	if err := n.read(ctx, source, progress); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// Close removes what apt has read.
func (n *NextRelease) Close() { os.RemoveAll(n.work) }

// read makes a configuration of apt's as on a system without any package, and reads the lists of the mirror.
func (n *NextRelease) read(ctx context.Context, source string, progress io.Writer) error {
	if err := os.MkdirAll(filepath.Join(n.work, "lists", "partial"), 0o755); err != nil {
		return err
	}
	if err := os.Chmod(n.work, 0o755); err != nil { // apt fetches as a user of its own
		return err
	}
	config := fmt.Sprintf(`Dir::Etc::sourcelist "%[1]s/sources.list"; Dir::Etc::sourceparts "/dev/null"; Dir::State::lists "%[1]s/lists";
Dir::State::status "%[1]s/status"; Dir::Cache "%[1]s"; Acquire::Languages "none"; Acquire::Retries "3";`, n.work)
	for name, content := range map[string]string{"sources.list": source + "\n", "status": "", "apt.conf": config} {
		if err := os.WriteFile(filepath.Join(n.work, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return n.apt(ctx, progress, "-q", "update")
}

// apt runs apt-get by that configuration.
func (n *NextRelease) apt(ctx context.Context, progress io.Writer, args ...string) error {
	env := append(os.Environ(), "APT_CONFIG="+filepath.Join(n.work, "apt.conf"), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8")
	return run(ctx, progress, env, "apt-get", args...)
}

// Fetch downloads a server with its libraries, and unpacks it beside those that are there. Progress goes to progress.
func (n *NextRelease) Fetch(ctx context.Context, b SideBySide, progress io.Writer) error {
	packages, err := n.download(ctx, b.Package, progress)
	if err != nil {
		return fmt.Errorf("%s: %w", b.Package, err)
	}
	tree := filepath.Join(n.work, "tree-"+b.Package)
	name := ""
	for _, deb := range packages {
		if err := run(ctx, progress, nil, "dpkg", "-x", deb, tree); err != nil {
			return err
		}
		if strings.HasPrefix(filepath.Base(deb), b.Package+"_") {
			name = strings.ReplaceAll(strings.TrimSuffix(filepath.Base(deb), ".deb"), "%3a", ":")
		}
	}
	now := time.Now() // the newest of several folders is used
	if err := errors.Join(os.Chmod(tree, 0o755), os.Chtimes(tree, now, now)); err != nil {
		return err
	}
	// A half-made folder is never taken for a whole one, and who came first at the same time has made it.
	folder := filepath.Join(n.cache, strings.ReplaceAll(name, ":", "-"))
	if err := os.Rename(tree, folder); err != nil && !executable(filepath.Join(folder, b.program)) {
		return err
	}
	return nil
}

// download has apt fetch a package and all that it depends on, as on a system without any package, into a folder of its own.
func (n *NextRelease) download(ctx context.Context, name string, progress io.Writer) (debs []string, err error) {
	archives := filepath.Join(n.work, "archives-"+name)
	if err := os.MkdirAll(filepath.Join(archives, "partial"), 0o755); err != nil {
		return nil, err
	}
	if err := n.apt(ctx, progress, "-o", "Dir::Cache::archives="+archives, "-qy", "--no-install-recommends", "--download-only", "install",
		name); err != nil {
		return nil, err
	}
	return filepath.Glob(filepath.Join(archives, "*.deb"))
}

// run runs a program of the system to its end, in this process's environment unless env is one; the error has its last words.
func run(ctx context.Context, progress io.Writer, env []string, name string, args ...string) error {
	last := &tail{}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdin = env, os.Stdin // sudo may ask for a password
	cmd.Stdout, cmd.Stderr = io.MultiWriter(progress, last), io.MultiWriter(progress, last)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s failed (%w): %s", name, strings.Join(args, " "), err, last)
	}
	return nil
}

// errNotDebian says that there is nothing to fetch a next release from.
var errNotDebian = errors.New("the sources of apt name no mirror of Debian")

var releases = regexp.MustCompile(`^(bookworm|trixie|forky|duke|testing|sid|unstable|stable)$`)

// debianSource is the line of apt's that names the next release on the mirror which the files below dir, apt's own, name:
// in the form of a line, or of fields.
func debianSource(dir string) (string, error) {
	files, _ := filepath.Glob(filepath.Join(dir, "sources.list.d", "*")) // the pattern is valid
	for _, file := range append([]string{filepath.Join(dir, "sources.list")}, files...) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		read := lineSource
		if strings.HasSuffix(file, ".sources") {
			read = fieldsSource
		}
		uri, key := read(string(text))
		if uri == "" {
			continue
		}
		if key != "" {
			key = "[signed-by=" + key + "] "
		}
		return "deb " + key + uri + " " + nextRelease + " main", nil
	}
	return "", errNotDebian
}

// fieldsSource finds the mirror, and the file of its key, among stanzas of fields.
func fieldsSource(text string) (uri, key string) {
	for stanza := range strings.SplitSeq(text, "\n\n") {
		fields := map[string]string{}
		lines := bufio.NewScanner(strings.NewReader(stanza))
		for lines.Scan() {
			if name, value, ok := strings.Cut(lines.Text(), ":"); ok && !strings.HasPrefix(name, "#") {
				fields[strings.ToLower(name)] = strings.TrimSpace(value)
			}
		}
		uris := strings.Fields(fields["uris"])
		if len(uris) > 0 && slices.Contains(strings.Fields(fields["types"]), "deb") &&
			slices.ContainsFunc(strings.Fields(fields["suites"]), releases.MatchString) {
			return uris[0], fields["signed-by"]
		}
	}
	return "", ""
}

// lineSource finds the same among lines such as deb [signed-by=KEY] URI SUITE main.
func lineSource(text string) (uri, key string) {
	for line := range strings.Lines(text) {
		options, rest := "", strings.TrimSpace(line)
		if _, behind, ok := strings.Cut(rest, "["); ok {
			if inside, after, closed := strings.Cut(behind, "]"); closed {
				options, rest = inside, "deb "+after
			}
		}
		if words := strings.Fields(rest); len(words) > 3 && words[0] == "deb" && strings.HasPrefix(strings.TrimSpace(line), "deb ") &&
			releases.MatchString(words[2]) {
			for option := range strings.FieldsSeq(options) {
				if file, ok := strings.CutPrefix(option, "signed-by="); ok {
					key = file
				}
			}
			return words[1], key
		}
	}
	return "", ""
}
