package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"hub.internal/pkg/localserver"
)

const (
	toolboxName    = "toolbox"
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
	dir, err := npmPackage(ctx, toolboxPackage, toolboxVersion, say)
	if err != nil {
		return target{}, err
	}
	program := filepath.Join(dir, "node_modules", toolboxPackage+"-"+runtime.GOOS+"-"+npmArch(), "bin", "toolbox")
	if err := os.Chmod(program, 0o755); err != nil {
		return target{}, fmt.Errorf("the package has no program for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	port, err := localserver.FreePort()
	if err != nil {
		return target{}, err
	}
	addr, config := fmt.Sprintf("127.0.0.1:%d", port), s.path("toolbox.yaml")
	if err := writeToolboxConfig(s, config, works); err != nil {
		return target{}, err
	}
	p, err := s.spawn(toolboxName, localserver.Program{Path: program, Dir: s.dir, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir},
		Args: []string{"--config", config, "--port", strconv.Itoa(port), "--enable-api", "--disable-version-check", "--disable-reload"}})
	if err != nil {
		return target{}, err
	}
	s.services[toolboxName] = p
	if err := awaitOK(ctx, p, "http://"+addr+"/"); err != nil {
		return target{}, fmt.Errorf("%w; see %s", err, s.path("log", "toolbox.log"))
	}
	s.addr[toolboxName] = addr
	s.pids[toolboxName], s.rssAtStart[toolboxName] = p.PID(), memoryOf(p.PID()).resident
	return target{name: toolboxName, processes: []string{toolboxName, "mariadb"}, own: 1, read: readToolbox,
		open: func(w *workload) (session, error) { return openToolbox(addr, nil, w) }}, nil
}

// writeToolboxConfig writes one document for the source and one per tool; JSON is YAML.
func writeToolboxConfig(s *stack, path string, works []*workload) error {
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

// openToolbox prepares calls of the tool that answers the workload, at toolbox or at whoever stands in front of it and asks for headers.
func openToolbox(addr string, header http.Header, w *workload) (session, error) {
	c := &httpSession{wire: wire{addr: addr}}
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
		c.requests = append(c.requests, request(addr, "/api/tool/"+name+"/invoke", header, body))
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
