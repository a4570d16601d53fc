package main

import (
	"bytes"
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
	dbhubName    = "dbhub"
	dbhubPackage = "@bytebase/dbhub"
	dbhubVersion = "1.4.0"
	nodeVersion  = "22.23.3" // that dbhub runs on, whatever this machine has
)

// startDBHub starts Bytebase's dbhub on the same database; its one way in is MCP.
func startDBHub(ctx context.Context, s *stack, _ []*workload, say func(string, ...any)) (target, error) {
	dir, err := npmPackage(ctx, dbhubPackage, dbhubVersion, say)
	if err != nil {
		return target{}, err
	}
	nodePackage := "node-" + runtime.GOOS + "-" + npmArch()
	node, err := npmPackage(ctx, nodePackage, nodeVersion, say)
	if err != nil {
		return target{}, err
	}
	port, err := localserver.FreePort()
	if err != nil {
		return target{}, err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	dsn := fmt.Sprintf("mysql://%s:%s@127.0.0.1:%d/%s", s.source.Reader, s.source.ReaderPassword, s.sources[0].Port(), s.source.Database)
	p, err := s.spawn(dbhubName, localserver.Program{Path: filepath.Join(node, "node_modules", nodePackage, "bin", "node"), Dir: s.dir,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "DSN=" + dsn},
		Args: []string{filepath.Join(dir, "node_modules", dbhubPackage, "dist", "index.js"), "--transport", "http", "--host", "127.0.0.1",
			"--port", strconv.Itoa(port)}})
	if err != nil {
		return target{}, err
	}
	s.services[dbhubName] = p
	if err := awaitOK(ctx, p, "http://"+addr+"/healthz"); err != nil {
		return target{}, fmt.Errorf("%w; see %s", err, s.path("log", "dbhub.log"))
	}
	s.pids[dbhubName], s.rssAtStart[dbhubName] = p.PID(), memoryOf(p.PID()).resident
	return target{name: dbhubName, processes: []string{dbhubName, "mariadb"}, own: 1, read: readDBHub,
		open: func(w *workload) (session, error) { return openDBHub(addr, w) }}, nil
}

// openDBHub prepares calls of execute_sql, the argument of an input written into the statement.
func openDBHub(addr string, w *workload) (session, error) {
	c := &httpSession{wire: wire{addr: addr}}
	header := http.Header{"Accept": {"application/json, text/event-stream"}}
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
		c.requests = append(c.requests, request(addr, "/mcp", header, body))
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
