package main

// The peer is held at an exact version, which a person raises together with the kept report.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"hub.internal/pkg/localserver"
)

const (
	toolboxPackage = "@toolbox-sdk/server"
	toolboxVersion = "1.12.0"
)

// startToolbox starts Google's mcp-toolbox on the same database. The package's own script
// does no more than to choose the program of a package per platform and run it.
//
// Its tool for a campaign has the statement that Hub sends, with a parameter; the other
// workloads go through mysql-execute-sql, its counterpart of execute_read_sql. Its settings
// are its defaults: a statement with a parameter is prepared for each call.
func startToolbox(ctx context.Context, s *stack, works []*workload, say func(string, ...any)) (target, error) {
	dir, err := npmPackage(ctx, say)
	if err != nil {
		return target{}, err
	}
	// The platforms by npm's names.
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	program := filepath.Join(dir, "node_modules", toolboxPackage+"-"+runtime.GOOS+"-"+arch, "bin", "toolbox")
	if err := os.Chmod(program, 0o755); err != nil {
		return target{}, fmt.Errorf("the package has no program for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	port, err := localserver.FreePort()
	if err != nil {
		return target{}, err
	}
	t := &toolbox{stack: s, addr: fmt.Sprintf("127.0.0.1:%d", port)}
	config := s.path("toolbox.yaml")
	if err := t.writeConfig(config, works); err != nil {
		return target{}, err
	}
	p, err := s.spawn("toolbox", localserver.Program{Path: program, Dir: s.dir, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir},
		Args: []string{"--config", config, "--port", strconv.Itoa(port), "--enable-api", "--disable-version-check", "--disable-reload"}})
	if err != nil {
		return target{}, err
	}
	s.services["toolbox"] = p
	if err := awaitOK(ctx, p, "http://"+t.addr+"/"); err != nil {
		return target{}, fmt.Errorf("%w; see %s", err, s.path("log", "toolbox.log"))
	}
	s.pids["toolbox"], s.rssAtStart["toolbox"] = p.PID(), memoryOf(p.PID()).resident
	return target{name: "toolbox", processes: []string{"toolbox", "mariadb"}, own: 1, open: t.open, read: readToolbox}, nil
}

// toolbox is the running peer.
// It has its own connections to the same server, as the same user as query.
type toolbox struct {
	stack *stack
	addr  string
}

// writeConfig writes one document for the source and one per tool; JSON is YAML.
func (t *toolbox) writeConfig(path string, works []*workload) error {
	s := t.stack
	documents := []any{
		map[string]any{"kind": "source", "name": "source", "type": "mysql", "host": "127.0.0.1", "port": strconv.Itoa(s.sources[0].Port()),
			"database": s.source.Database, "user": s.source.Reader, "password": s.source.ReaderPassword},
		map[string]any{"kind": "tool", "name": "execute", "type": "mysql-execute-sql", "source": "source", "description": "Run a statement."},
	}
	for _, w := range works {
		if len(w.inputs[0].args) > 0 {
			documents = append(documents, map[string]any{"kind": "tool", "name": w.name, "type": "mysql-sql", "source": "source",
				"description": w.title, "statement": w.single,
				"parameters": []any{map[string]any{"name": "id", "type": "integer", "description": "Which one."}}})
		}
	}
	var text strings.Builder
	for _, d := range documents {
		b, err := json.Marshal(d)
		if err != nil {
			return err
		}
		text.WriteString("---\n" + string(b) + "\n")
	}
	return os.WriteFile(path, []byte(text.String()), 0o600)
}

// open prepares a call of the tool that answers the workload.
func (t *toolbox) open(w *workload) (session, error) {
	c := &httpSession{wire: wire{addr: t.addr}}
	for _, in := range w.inputs {
		// A workload whose inputs have an argument has a tool of its own.
		name, parameters := "execute", map[string]any{"sql": w.single}
		if len(in.args) > 0 {
			name, parameters = w.name, map[string]any{"id": in.args[0]}
		}
		body, err := json.Marshal(parameters)
		if err != nil {
			return nil, err
		}
		c.requests = append(c.requests, request(t.addr, "/api/tool/"+name+"/invoke", nil, body))
	}
	return c, nil
}

// readToolbox reads {"result":"[{…}]"}: JSON inside of JSON.
func readToolbox(w *workload, b []byte) ([][]string, error) {
	var answer struct {
		Result string
		Error  string
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return nil, err
	}
	var rows []record
	if err := decode([]byte(answer.Result), &rows); err != nil {
		return nil, fmt.Errorf("%w in %.300s", err, b)
	}
	return records(rows[:min(len(rows), w.most)], w.fields)
}

// npmPackage installs toolbox at its exact version into the user's cache, outside the checkout, once, and returns the directory that
// holds node_modules. No script of the package runs during the installation.
func npmPackage(ctx context.Context, say func(string, ...any)) (string, error) {
	if _, err := exec.LookPath("npm"); err != nil {
		return "", errors.New("npm is not on the PATH")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "hub", "npm", "toolbox-sdk-server-"+toolboxVersion)
	if _, err := os.Stat(filepath.Join(dir, "node_modules", toolboxPackage, "package.json")); err == nil {
		return dir, nil
	}
	say("installing %s %s into %s", toolboxPackage, toolboxVersion, dir)
	making := dir + ".making" // renamed when whole
	if err := errors.Join(os.RemoveAll(making), os.RemoveAll(dir), os.MkdirAll(making, 0o755)); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // the package has 100 MB
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "install", "--prefix", making, "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact",
		toolboxPackage+"@"+toolboxVersion)
	// npm may leave processes behind that hold the pipe.
	cmd.Dir, cmd.WaitDelay = making, time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install %s: %w: %.400s", toolboxPackage, err, out)
	}
	return dir, os.Rename(making, dir)
}
