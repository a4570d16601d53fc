package main

// Three targets are Hub: REST and MCP through the gateway, and the query service alone. What the gateway adds is the
// first less the last.

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/rpc"
)

// hubTarget is Hub as an agent sees it: the gateway's REST interface with an API key.
func hubTarget(s *stack) target {
	return edgeTarget("hub", func(w *workload) (session, error) {
		h := http.Header{"Authorization": {"Bearer " + s.key}}
		c := &httpSession{wire: wire{addr: s.addr["gateway"]}, unwrap: func(body []byte) ([]byte, error) { return envelopeData(w.tool, body) }}
		// Requests are written out before the load begins: making JSON is no part of what is measured.
		for _, in := range w.inputs {
			c.requests = append(c.requests, request(c.addr, "/api/tools/"+w.tool, h, in.json))
		}
		return c, nil
	})
}

// mcpTarget is Hub as a client of the Model Context Protocol sees it: the same gateway and the same key.
func mcpTarget(s *stack) target {
	return edgeTarget("mcp", func(w *workload) (session, error) {
		h := http.Header{"Authorization": {"Bearer " + s.key}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {"2025-11-25"}}
		c := &httpSession{wire: wire{addr: s.addr["gateway"]}, unwrap: structuredContent}
		for _, in := range w.inputs {
			body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, w.tool, in.json)
			c.requests = append(c.requests, request(c.addr, "/mcp", h, body))
		}
		return c, nil
	})
}

// edgeTarget is one transport of the gateway.
// Memory is that of gateway and query; the time of the others counts too.
func edgeTarget(name string, open func(*workload) (session, error)) target {
	return target{name: name, processes: []string{"gateway", "query", "auth", "redis", "postgres", "mariadb"}, own: 2, read: readHub,
		open: open}
}

// httpSession sends each input's request over a kept connection.
type httpSession struct {
	wire
	requests [][]byte
	// unwrap takes out of an answer what is the same in each; nil where that is all of it.
	unwrap func(body []byte) ([]byte, error)
}

// call sends the prepared request of the i-th input.
func (c *httpSession) call(i int) ([]byte, error) {
	body, err := c.send(c.requests[i])
	if err != nil || c.unwrap == nil {
		return body, err
	}
	return c.unwrap(body)
}

// structuredContent takes data out of the result, before which a short text stands.
func structuredContent(body []byte) ([]byte, error) {
	_, data, found := bytes.Cut(body, []byte(`}],"structuredContent":`))
	if !found || !bytes.HasSuffix(data, []byte("}}}")) {
		return nil, fmt.Errorf("not a result: %.200s", body)
	}
	return data[:len(data)-2], nil
}

// envelopeData takes data out of the envelope, the rest of which differs from call to call.
func envelopeData(tool string, body []byte) ([]byte, error) {
	head, data, found := bytes.Cut(body, []byte(`,"data":`))
	if !found || !bytes.HasPrefix(head, []byte(`{"ok":true,"tool":"`+tool+`","count":`)) || !bytes.HasSuffix(data, []byte("}")) {
		return nil, fmt.Errorf("not an envelope: %.200s", body)
	}
	return data[:len(data)-1], nil
}

// readHub reads data of a tool.
func readHub(w *workload, data []byte) ([][]string, error) {
	if w.list == "" {
		var r record
		if err := decode(data, &r); err != nil {
			return nil, err
		}
		return records([]record{r}, w.fields)
	}
	// execute_read_sql has columns by name and rows as arrays.
	if w.list == "rows" {
		var answer struct {
			Columns   []struct{ Name string }
			Rows      [][]any
			Truncated bool
		}
		if err := decode(data, &answer); err != nil {
			return nil, err
		}
		if answer.Truncated {
			return nil, fmt.Errorf("the answer is truncated after %d rows", len(answer.Rows))
		}
		var names []string
		for _, c := range answer.Columns {
			names = append(names, c.Name)
		}
		return tuples(names, answer.Rows, w.fields)
	}
	var answer map[string]any
	if err := decode(data, &answer); err != nil {
		return nil, err
	}
	list, _ := answer[w.list].([]any)
	var rows []record
	for _, v := range list {
		r, _ := v.(map[string]any)
		rows = append(rows, r)
	}
	return records(rows, w.fields)
}

// serviceTarget is the query service alone, on its internal listener: what the gateway
// adds is the difference. A session speaks for an agent as the gateway does, with a token of
// its own, which is good for longer than any measurement takes.
func serviceTarget(s *stack, on source) target {
	return target{name: "service" + on.suffix, processes: []string{on.query, "postgres", on.name}, own: 1, read: readHub,
		open: func(w *workload) (session, error) {
			keys, err := caller.NewKeys(caller.Gateway, s.signing("gateway"), caller.TrustedKeys{}, time.Now)
			if err != nil {
				return nil, err
			}
			h, who := http.Header{}, caller.Caller{Kind: caller.Key, Service: "hub-bench", ExternalUserID: "bench", CredentialID: "bench",
				Scopes: []string{"explore", "sql", "query"}}
			if err := keys.Present(caller.With(context.Background(), who), h, "query", false); err != nil {
				return nil, err
			}
			c := &httpSession{wire: wire{addr: s.addr[on.query]}}
			for _, in := range w.inputs {
				c.requests = append(c.requests, request(c.addr, rpc.ToolPath(w.tool), h, in.json))
			}
			return c, nil
		}}
}
