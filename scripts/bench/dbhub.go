package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"hub.internal/pkg/localserver"
)

const (
	dbhubPackage = "@bytebase/dbhub"
	dbhubVersion = "1.4.0"
)

// startDBHub starts Bytebase's dbhub on the same database; its one way in is MCP.
func startDBHub(ctx context.Context, s *stack, _ []*workload, say func(string, ...any)) (target, error) {
	version, major, minor, err := nodeVersion(ctx)
	if err != nil {
		return target{}, err
	}
	if major < 22 || major == 22 && minor < 5 {
		return target{}, fmt.Errorf("needs Node 22.5 or newer, and node here is %s", version)
	}
	dir, err := npmPackage(ctx, dbhubPackage, dbhubVersion, say)
	if err != nil {
		return target{}, err
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return target{}, err
	}
	port, err := localserver.FreePort()
	if err != nil {
		return target{}, err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	dsn := fmt.Sprintf("mysql://%s:%s@%s/%s", s.source.Reader, s.source.ReaderPassword, s.mariadb.Addr(), s.source.Database)
	p, err := s.spawn("dbhub", localserver.Program{Path: node, Dir: s.dir,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "DSN=" + dsn},
		Args: []string{filepath.Join(dir, "node_modules", dbhubPackage, "dist", "index.js"), "--transport", "http", "--host", "127.0.0.1",
			"--port", strconv.Itoa(port)}})
	if err != nil {
		return target{}, err
	}
	s.closers = append(s.closers, p.Kill)
	if err := awaitOK(ctx, p, "http://"+addr+"/healthz"); err != nil {
		return target{}, fmt.Errorf("%w; see %s", err, s.path("log", "dbhub.log"))
	}
	s.pids["dbhub"], s.rssAtStart["dbhub"] = p.PID(), memoryOf(p.PID()).resident
	return target{name: "dbhub", processes: []string{"dbhub"}, own: 1, has: always, read: readDBHub,
		open: func(w *workload) (session, error) { return openDBHub(addr, w) }}, nil
}

func openDBHub(addr string, w *workload) (session, error) {
	c := &plainSession{wire: wire{addr: addr}}
	for _, in := range w.inputs {
		text := w.single
		for _, arg := range in.args {
			text = strings.Replace(text, "?", fmt.Sprint(arg), 1)
		}
		body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
			"params": map[string]any{"name": "execute_sql", "arguments": map[string]any{"sql": text}}})
		if err != nil {
			return nil, err
		}
		c.requests = append(c.requests, request(addr, "/mcp", map[string][]string{"Accept": {"application/json, text/event-stream"}}, body))
	}
	return c, nil
}

// readDBHub reads a JSON-RPC answer, alone or as a server-sent event, with JSON in its text.
func readDBHub(w *workload, b []byte) ([][]string, error) {
	if _, event, found := bytes.Cut(b, []byte("data: ")); found && !bytes.HasPrefix(b, []byte("{")) {
		b = event
	}
	var answer struct {
		Result struct {
			Content []struct{ Text string }
		}
	}
	if err := decode(b, &answer); err != nil {
		return nil, fmt.Errorf("%.300s: %w", b, err)
	}
	if len(answer.Result.Content) == 0 {
		return nil, fmt.Errorf("no content in %.300s", b)
	}
	var inner struct {
		Data struct {
			Statements []struct{ Rows []record }
		}
	}
	if err := decode([]byte(answer.Result.Content[0].Text), &inner); err != nil {
		return nil, fmt.Errorf("%.300s: %w", answer.Result.Content[0].Text, err)
	}
	if len(inner.Data.Statements) == 0 {
		return nil, fmt.Errorf("no rows in %.300s", answer.Result.Content[0].Text)
	}
	rows := inner.Data.Statements[0].Rows
	return records(rows[:min(len(rows), w.most)], w.fields)
}
