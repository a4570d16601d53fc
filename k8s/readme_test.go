// Package k8s_test follows README.md: its commands run as they are written there, with the programs that they name where these can be
// here, and with stand-ins for a cluster, which refuse what kind and kubectl would refuse.
package k8s_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"hub.internal/k8s/policy"
	"hub.internal/pkg/hubtest"
)

// TestMain runs a stand-in where the test has started the binary under the name of one.
func TestMain(m *testing.M) {
	standIns := map[string]func(*cluster, []string) error{
		"kind":    (*cluster).kind,
		"kubectl": (*cluster).kubectl,
		"docker":  (*cluster).docker,
		"go":      (*cluster).golang,
	}
	if run, ok := standIns[filepath.Base(os.Args[0])]; ok {
		c := &cluster{
			path:    os.Getenv("STAND_IN_STATE"),
			Images:  map[string]bool{},
			Secrets: map[string][]string{},
			Ports:   map[string][]int32{},
		}
		err := errors.Join(c.load(), run(c, os.Args[1:]), c.save())
		var ended *exec.ExitError
		switch {
		case errors.As(err, &ended):
			os.Exit(ended.ExitCode())
		case err != nil:
			fmt.Fprintln(os.Stderr, filepath.Base(os.Args[0])+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// cluster is what the stand-ins know, from one command to the next.
type cluster struct {
	path        string
	There       bool
	Images      map[string]bool // on its nodes
	Namespaces  []string
	Secrets     map[string][]string
	Deployments []string
	Ports       map[string][]int32
}

func (c *cluster) load() error {
	b, err := os.ReadFile(c.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return errors.Join(err, json.Unmarshal(b, c))
}

func (c *cluster) save() error {
	b, err := json.Marshal(c)
	return errors.Join(err, os.WriteFile(c.path, b, 0o600))
}

// docker has no engine.
func (*cluster) docker([]string) error { return errors.New("cannot connect to the Docker daemon") }

// golang is Go, but for the programs of images: compiling them is no matter of the document, and takes minutes.
func (*cluster) golang(args []string) error {
	if i := slices.Index(args, "-o"); len(args) > 0 && args[0] == "build" && i > 0 && strings.HasPrefix(args[len(args)-1], "./cmd/") {
		return os.WriteFile(args[i+1], []byte(args[len(args)-1]), 0o755)
	}
	run := func(program string, args ...string) error {
		cmd := exec.Command(program, args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		return cmd.Run()
	}
	golang := os.Getenv("STAND_IN_GO")
	if args[0] != "run" {
		return run(golang, args...)
	}
	// Where its sources are: there its packages are compiled already.
	program := filepath.Join(os.Getenv("STAND_IN_PROGRAMS"), filepath.Base(args[1]))
	if err := run(golang, "build", "-C", os.Getenv("STAND_IN_ROOT"), "-o", program, args[1]); err != nil {
		return err
	}
	return run(program, args[2:]...)
}

func (c *cluster) kind(args []string) error {
	switch strings.Join(args[:min(2, len(args))], " ") {
	case "create cluster":
		c.There = true
		return nil
	case "load image-archive":
		if !c.There {
			return errors.New("there is no cluster")
		}
		out, err := exec.Command("tar", "-xOf", args[2], "manifest.json").Output()
		if err != nil {
			return fmt.Errorf("%s: %w", args[2], err)
		}
		var images []struct{ RepoTags []string }
		if err := json.Unmarshal(out, &images); err != nil {
			return err
		}
		for _, i := range images {
			for _, name := range i.RepoTags {
				c.Images[normal(name)] = true
			}
		}
		return nil
	}
	return fmt.Errorf("%v is not known here", args)
}

// normal is an image's name as containerd has it: one without a registry is Docker's.
func normal(name string) string {
	if host, _, found := strings.Cut(name, "/"); found && (strings.ContainsAny(host, ".:") || host == "localhost") {
		return name
	}
	return "docker.io/" + name
}

func (c *cluster) kubectl(args []string) error {
	if !c.There {
		return errors.New("there is no cluster")
	}
	if len(args) > 2 && args[0] == "-n" {
		if !slices.Contains(c.Namespaces, args[1]) {
			return fmt.Errorf("there is no namespace %s", args[1])
		}
		args = args[2:]
	}
	switch args[0] {
	case "apply":
		return c.apply(args[len(args)-1])
	case "create":
		return c.create(os.Stdin)
	case "wait":
		if len(c.Deployments) == 0 {
			return errors.New("no matching resources found")
		}
		return nil
	case "exec":
		if name, ok := strings.CutPrefix(
			args[1],
			"deploy/",
		); !ok || !slices.Contains(c.Deployments, name) || args[2] != "--" ||
			args[3] != "/service" {
			return fmt.Errorf("%v: no such pod, or no such program in it", args)
		}
		fmt.Println(strings.TrimPrefix(args[1], "deploy/"), strings.Join(args[4:], " "))
		return nil
	case "port-forward":
		var port int32
		if _, err := fmt.Sscan(args[2], &port); err != nil || !slices.Contains(c.Ports[strings.TrimPrefix(args[1], "service/")], port) {
			return fmt.Errorf("%v: there is no such port: %v", args, c.Ports)
		}
		return nil
	}
	return fmt.Errorf("%v is not known here", args)
}

// create takes Secrets, once.
func (c *cluster) create(from io.Reader) error {
	text, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	var list struct {
		metav1.TypeMeta
		Items []corev1.Secret
	}
	if err := yaml.UnmarshalStrict(text, &list); err != nil {
		return err
	}
	for _, s := range list.Items {
		if _, twice := c.Secrets[s.Name]; twice || s.Kind != "Secret" {
			return fmt.Errorf("%s %q is no Secret, or exists already", s.Kind, s.Name)
		}
		c.Secrets[s.Name] = slices.Concat(slices.Collect(maps.Keys(s.Data)), slices.Collect(maps.Keys(s.StringData)))
	}
	return nil
}

// apply refuses what would not start: images that no node has and nobody pulls, and Secrets or keys that are not there.
func (c *cluster) apply(folder string) error {
	m, err := policy.Render(folder)
	if err != nil {
		return err
	}
	for _, n := range m.Namespaces {
		c.Namespaces = append(c.Namespaces, n.Name)
	}
	var pods []corev1.PodSpec
	for _, d := range m.Deployments {
		c.Deployments = append(c.Deployments, d.Name)
		pods = append(pods, d.Spec.Template.Spec)
	}
	for _, s := range m.StatefulSets {
		pods = append(pods, s.Spec.Template.Spec)
	}
	for _, s := range m.Services {
		for _, p := range s.Spec.Ports {
			c.Ports[s.Name] = append(c.Ports[s.Name], p.Port)
		}
	}
	for _, p := range pods {
		for _, container := range slices.Concat(p.InitContainers, p.Containers) {
			if container.ImagePullPolicy == corev1.PullNever && !c.Images[normal(container.Image)] {
				return fmt.Errorf("ErrImageNeverPull: %s is none of %v", container.Image, slices.Sorted(maps.Keys(c.Images)))
			}
		}
		for _, v := range p.Volumes {
			if v.Secret != nil && c.Secrets[v.Secret.SecretName] == nil {
				return fmt.Errorf("there is no Secret %s", v.Secret.SecretName)
			}
			if v.Projected == nil {
				continue
			}
			for _, source := range v.Projected.Sources {
				if source.Secret != nil && c.Secrets[source.Secret.Name] == nil {
					return fmt.Errorf("there is no Secret %s", source.Secret.Name)
				}
			}
		}
	}
	return nil
}

// TestFromNothingToRunning follows the document's way on one machine, line by line.
func TestFromNothingToRunning(t *testing.T) {
	root := hubtest.Root(t)
	help, err := exec.Command("buildah", "build", "--help").Output()
	if err != nil || !bytes.Contains(help, []byte("--build-context")) {
		t.Skip(
			"no image is built: there is no buildah of 1.28 or later here (`go run ./scripts/stack install --images` installs what the system has)",
		)
	}
	text, err := os.ReadFile(filepath.Join(root, "k8s", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := bytes.Cut(text, []byte("\n## From nothing to running, on this machine\n\n"))
	if !found {
		t.Fatal("the document has no such part")
	}
	var script strings.Builder
	for line := range bytes.Lines(text) {
		command, ok := bytes.CutPrefix(line, []byte("    "))
		if !ok {
			break
		}
		script.Write(command)
	}
	if n := strings.Count(script.String(), "\n"); n < 9 {
		t.Fatalf("%d commands:\n%s", n, &script)
	}
	dir, programs := overlay(t, root), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	golang, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kind", "kubectl", "docker", "go"} {
		if err := os.Symlink(self, filepath.Join(programs, name)); err != nil {
			t.Fatal(err)
		}
	}
	storage := t.TempDir()
	conf := filepath.Join(storage, "storage.conf")
	if err := os.WriteFile(
		conf,
		fmt.Appendf(
			nil,
			"[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n",
			filepath.Join(storage, "root"),
			filepath.Join(storage, "run"),
		),
		0o600,
	); err != nil {
		t.Fatal(err)
	}
	able := exec.CommandContext(t.Context(), "buildah", "from", "scratch")
	able.Env = append(os.Environ(), "CONTAINERS_STORAGE_CONF="+conf)
	if out, err := able.CombinedOutput(); err != nil {
		t.Skipf("no image is built: buildah cannot make a container of nothing here: %v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script.String())
	cmd.Dir = dir
	cmd.Env = append(
		os.Environ(),
		"PATH="+programs+":"+os.Getenv("PATH"),
		"STAND_IN_GO="+golang,
		"STAND_IN_ROOT="+root,
		"STAND_IN_PROGRAMS="+storage,
		"STAND_IN_STATE="+filepath.Join(storage, "cluster.json"),
		"CONTAINERS_STORAGE_CONF="+conf,
		"GOWORK=",
		"CGO_ENABLED=0",
	) // in a clone there is the workspace, and objects are compiled so already
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, want := range []string{"made hub/gateway:dev with buildah", "auth user add ada@example.com", "auth apikey issue"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// overlay is a folder with everything that lies at the root, by links, and a bin and a git of its own.
func overlay(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); name != ".git" && name != "bin" && name != ".hub" {
			if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q",
		"--allow-empty", "-m", "x"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return dir
}
