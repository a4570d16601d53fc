package localstack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hub.internal/pkg/inventory"
	"hub.internal/pkg/localserver"
	"hub.internal/pkg/postgres"
)

// Build builds packages of the workspace at root into the folder bin, which it makes. Flags such as -race go ahead of them; without
// that one, programs are built without cgo, as those of a release. The version control's stamp is left out: a commit alone does not
// make another program. What the compiler says is in the error.
func Build(ctx context.Context, root, bin string, packages []string, flags ...string) error {
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	args := slices.Concat([]string{"build", "-buildvcs=false", inventory.BuildTags, "-o", bin + "/"}, flags, packages)
	cmd := exec.CommandContext(ctx, "go", args...)
	cgo := "CGO_ENABLED=0"
	if slices.Contains(flags, "-race") {
		cgo = "CGO_ENABLED=1"
	}
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOWORK=", cgo) // programs of many modules at once are the workspace's
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("go is not on the PATH: install Go (the version in go.work) from https://go.dev/dl")
	}
	if err != nil {
		return fmt.Errorf("go build: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// Programs are the packages of all programs of services: that which serves, and its tools.
func Programs(services inventory.Inventory) []string {
	list := make([]string, len(services))
	for i, s := range services {
		list[i] = s.Module() + "/cmd/..."
	}
	return list
}

// Serve starts a program of a service as a child of this process, in an environment of its own. A file as out is handed to the
// child, and may be closed afterwards.
func Serve(path string, env []string, dir string, out io.Writer) (*localserver.Process, error) {
	return localserver.StartProgram(localserver.Program{Path: path, Args: []string{"serve"}, Env: env, Dir: dir, Output: out})
}

// Run runs a program to its end and returns what it printed. The error has the program's own words.
func Run(ctx context.Context, path, dir string, env []string, input string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	cmd.Env = append([]string{}, env...) // nil would mean this process's
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		said := bytes.TrimSpace(append(problems.Bytes(), out...))
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(path), strings.Join(args[:min(2, len(args))], " "), err, said)
	}
	return out, nil
}

// Command runs a command of a service with the service's settings, as Run does.
func (s Stack) Command(ctx context.Context, service inventory.Service, input string, args ...string) ([]byte, error) {
	return Run(ctx, s.Program(service.Name), s.Root, Environ(s.Settings(service, service.Name)), input, args...)
}

// Migrate runs the migrations of every service, each its own, as the owner of the write store.
// They run one after the other, in the order of deploy/services.json; one that fails ends it.
func (s Stack) Migrate(ctx context.Context) error {
	for _, service := range s.Services {
		settings := s.Settings(service, service.Name)
		settings["HUB_MIGRATE_URL"] = s.StoreURL(postgres.Owner)
		if _, err := Run(ctx, s.Program(service.Name), s.Root, Environ(settings), "", "migrate"); err != nil {
			return err
		}
	}
	return nil
}

// APIKey is a key as auth has issued it, once.
type APIKey struct {
	ID  string `json:"id"`
	Key string `json:"key"`
}

// IssueKey has the service with the keys' pepper issue an API key.
// service is the name that the key's calls are accounted to.
func (s Stack) IssueKey(ctx context.Context, name, service string, args ...string) (key APIKey, err error) {
	for _, auth := range s.Services {
		if !auth.Has(inventory.Pepper) {
			continue
		}
		all := append([]string{"apikey", "issue", "--name", name, "--service", service, "--json"}, args...)
		out, err := s.Command(ctx, auth, "", all...)
		if err != nil {
			return key, err
		}
		if err := json.Unmarshal(out, &key); err != nil || key.Key == "" {
			return key, fmt.Errorf("%s apikey issue --name %s answered no key: %w", auth.Name, name, err)
		}
		return key, nil
	}
	return key, errors.New("no service here issues API keys")
}

// Unlimited are the arguments of auth's commands that give a key or an app limits far above any load, so that a benchmark measures
// the gateway and not them.
func Unlimited() []string {
	return []string{"--user-per-minute", "6000000", "--user-burst", "100000", "--service-per-minute", "6000000", "--service-burst", "100000"}
}

// Ready asks once: nil when url answers with 200 or 204.
func Ready(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Close = true // a kept connection to an earlier process would be in the way of the next
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "Get "))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusNoContent {
		return fmt.Errorf("%s answers %s", url, res.Status)
	}
	return nil
}

// Await asks again and again, with a pause, until url is ready. It ends with the process, where there is one, and with ctx.
func Await(ctx context.Context, p *localserver.Process, url string, pause time.Duration) error {
	return localserver.Poll(ctx, p, pause, func() error { return Ready(ctx, url) })
}
