package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
)

// buildah is the program with a storage of the test's own.
func buildah(t *testing.T) builder {
	t.Helper()
	if !newBuildah().able(t.Context()) {
		t.Skip(
			"no image is built: there is no buildah of 1.28 or later here (`go run ./scripts/stack install --images` installs what the system has)",
		)
	}
	dir := t.TempDir()
	b := newBuildah("--root="+filepath.Join(dir, "root"), "--runroot="+filepath.Join(dir, "run"), "--storage-driver=vfs")
	if out, err := exec.Command("buildah", append(slices.Clone(b.before), "from", "scratch")...).CombinedOutput(); err != nil {
		t.Skipf("no image is built: buildah cannot make a container of nothing here: %v: %s", err, out)
	}
	return b
}

func (b builder) ask(t *testing.T, args ...string) string {
	t.Helper()
	var errs bytes.Buffer
	cmd := exec.Command(b.name, append(slices.Clone(b.before), args...)...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", b.name, args[0], err, errs.String())
	}
	return strings.TrimSpace(string(out))
}

// TestImage builds the image of a service twice, looks at what is in it, and runs it as Kubernetes would.
func TestImage(t *testing.T) {
	b := buildah(t)
	e, err := repository{root: hubtest.Root(t)}.edition(t.Context(), "authoring", "v0.2.0")
	if err != nil {
		t.Fatal(err)
	}
	// Elsewhere than make image works; with the Go that is here, and with objects that are compiled already.
	e.root, e.toolchain, e.quick = overlay(t, e.root), "", true
	var made [2]string
	for i := range made {
		var log bytes.Buffer
		if err := e.layOut(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.image(t.Context(), e, &log); err != nil {
			t.Fatalf("%v: %s", err, log.String())
		}
		made[i] = b.ask(t, "images", "--no-trunc", "--format={{.ID}} {{.Digest}}", e.image())
	}
	if made[0] != made[1] {
		t.Errorf("two builds are %s and %s", made[0], made[1])
	}
	archive := filepath.Join(t.TempDir(), "new", "image.tar")
	for range 2 { // the second takes the place of the first
		var log bytes.Buffer
		if err := b.archive(t.Context(), e, archive, &log); err != nil {
			t.Fatalf("%v: %s", err, log.String())
		}
	}
	// Without a registry and without localhost/: Docker's engine and containerd know it as docker.io/hub/authoring:0.2.0 then, as a pod does.
	if says, err := exec.Command(
		"tar",
		"-xOf",
		archive,
		"manifest.json",
	).Output(); err != nil ||
		!regexp.MustCompile(`"(docker\.io/)?hub/authoring:0\.2\.0"`).Match(says) {
		t.Errorf("the file says of itself: %v %s", err, says)
	}
	var inspected struct {
		OCIv1 struct {
			Created string
			Config  struct {
				User            string
				Env, Entrypoint []string
				Cmd             []string
				ExposedPorts    map[string]any
				Labels          map[string]string
			}
		}
	}
	if err := json.Unmarshal([]byte(b.ask(t, "inspect", "--type=image", e.image())), &inspected); err != nil {
		t.Fatal(err)
	}
	c := inspected.OCIv1.Config
	if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/service"}) || !slices.Equal(c.Cmd, []string{"serve"}) ||
		len(c.ExposedPorts) != 2 ||
		!slices.Contains(c.Env, "HUB_CATALOG=/etc/hub/catalog.json") {
		t.Errorf("%+v", c)
	}
	created := e.at.UTC().Format("2006-01-02T15:04:05Z")
	for name, want := range map[string]string{"title": "hub/authoring", "version": "0.2.0", "revision": e.revision, "created": created,
		"source": e.source, "licenses": "Apache-2.0"} {
		if got := c.Labels["org.opencontainers.image."+name]; got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	if len(c.Labels) != 6 || inspected.OCIv1.Created != created {
		t.Errorf("of %s, labels %v", inspected.OCIv1.Created, c.Labels)
	}
	if os.Geteuid() != 0 {
		t.Skip("the image is not looked into and not run: that needs root here")
	}
	rootfs := b.ask(t, "mount", b.ask(t, "from", e.image()))
	var files []string
	if err := filepath.WalkDir(rootfs, func(path string, d fs.DirEntry, err error) error {
		if info, e := d.Info(); err == nil && e == nil && !d.IsDir() {
			files = append(files, fmt.Sprintf("%s %s", strings.TrimPrefix(path, rootfs), info.Mode()))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"/etc/hub/catalog.json -rw-r--r--", "/service -rwxr-xr-x"}; !slices.Equal(files, want) {
		t.Errorf("the image holds %v", files)
	}
	t.Run("as Kubernetes runs it", func(t *testing.T) { runConfined(t, rootfs) })
}

// overlay is a folder with the sources, by links, and a bin of its own.
func overlay(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"pkg", "services", "deploy"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// confined runs $ROOT/service in a root that nobody can write to, but for /tmp, as uid 65532 without capabilities and
// without a way to get some.
const confined = `set -e
mount --bind "$ROOT" "$ROOT"
mount -o remount,bind,ro "$ROOT"
mount -t tmpfs -o nosuid,nodev,noexec,size=16m,mode=1777 tmpfs "$ROOT/tmp"
mount -t proc -o ro proc "$ROOT/proc"
exec setpriv --no-new-privs chroot --groups= --userspec=65532:65532 "$ROOT" /service "$@"`

// runConfined migrates and serves from the files of an image, with a real store. No container runtime works everywhere, so this is
// what one would do, with the programs of util-linux and coreutils.
func runConfined(t *testing.T, rootfs string) {
	if out, err := exec.Command(
		"unshare",
		"--mount",
		"setpriv",
		"--no-new-privs",
		"mount",
		"-t",
		"tmpfs",
		"tmpfs",
		rootfs,
	).CombinedOutput(); err != nil {
		t.Skipf("the image is not run: this machine allows no mounts: %v: %s", err, out)
	}
	for _, dir := range []string{"proc", "tmp"} { // which a runtime makes
		if err := os.Mkdir(filepath.Join(rootfs, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	store := hubtest.WriteStore(t)
	port, err := localserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	ops, err := localserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	log := &hubtest.Buffer{}
	start := func(args ...string) *localserver.Process {
		t.Helper()
		env := append(
			[]string{
				"PATH=" + os.Getenv("PATH"),
				"ROOT=" + rootfs,
				"HUB_CATALOG=/etc/hub/catalog.json",
				fmt.Sprintf("HUB_ADDR=127.0.0.1:%d", port),
				fmt.Sprintf("HUB_OPS_ADDR=127.0.0.1:%d", ops),
				"HUB_MIGRATE_URL=" + store.OwnerURL,
				"HUB_WRITE_STORE_URL=" + store.URL("authoring"),
				"HUB_DISCOVERY=static",
				"HUB_STATIC=query=127.0.0.1:1",
			},
			callertest.Environ("authoring", "authoring", "query", "gateway")...)
		p, err := localserver.StartProgram(
			localserver.Program{
				Path:   "/usr/bin/unshare",
				Args:   append([]string{"--mount", "sh", "-c", confined, "sh"}, args...),
				Env:    env,
				Output: log,
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		return p
	}
	p := start("migrate")
	<-p.Done()
	if p.ExitCode() != 0 {
		t.Fatalf("migrate: %v\n%s", p.Err(), log)
	}
	p = start("serve")
	get := func(port int, path string) string {
		res, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
		if err != nil {
			return ""
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return fmt.Sprint(res.StatusCode, " ", string(b))
	}
	hubtest.Eventually(t, "it is ready", func() bool {
		select {
		case <-p.Done():
			t.Fatalf("serve: %v\n%s", p.Err(), log)
		default:
		}
		return strings.HasPrefix(get(port, "/readyz"), "200 ")
	})
	if alive := get(port, "/healthz"); !strings.Contains(alive, `"version":"v0.2.0"`) {
		t.Errorf("/healthz: %s", alive)
	}
	if metrics := get(ops, "/metrics"); !regexp.MustCompile(`target_info\{[^}]*service_version="v0\.2\.0"`).MatchString(metrics) {
		t.Errorf("/metrics do not tell the version: %.500s", metrics)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`Uid:(\t65532){4}`, `Gid:(\t65532){4}`, `Groups:\t\s*`, `CapInh:\t0+`, `CapPrm:\t0+`, `CapEff:\t0+`,
		`CapAmb:\t0+`, `NoNewPrivs:\t1`} {
		if !regexp.MustCompile(`(?m)^` + want + `$`).Match(status) {
			t.Errorf("it does not run with %s:\n%s", want, status)
		}
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", p.PID()))
	if err != nil || !regexp.MustCompile(`(?m)^\S+ \S+ \S+ \S+ / ro[, ]`).Match(mounts) {
		t.Errorf("%v: its root is not read-only:\n%s", err, mounts)
	}
	if err := p.Stop(t.Context()); err != nil || p.ExitCode() != 0 {
		t.Errorf("it ends with %v, %d\n%s", err, p.ExitCode(), log)
	}
}
