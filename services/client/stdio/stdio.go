// Package stdio is the transport of the Model Context Protocol for clients that start a program: messages come as lines
// on its standard input, and answers go as lines to its standard output. It carries each message to a gateway's /mcp
// and the answer back as it is, so that there is one server, and both transports say the same. It refuses to know any
// tool: what a message means is the gateway's to say.
package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// maxLine bounds a message, in bytes; the gateway bounds it again.
	maxLine = 40 << 20
	// inFlight is how many messages are on their way at once; what follows is read when one has come back.
	inFlight = 16

	// The member of _meta that says the revision of a request, since there is no initialize any more.
	versionMeta = "io.modelcontextprotocol/protocolVersion"
	// headersSince is the first revision whose requests name method and tool in headers.
	headersSince = "2026-07-28"
	// JSON-RPC leaves -32000 to -32099 to servers.
	codeRefused = -32000
)

// Bridge carries messages between a client and a gateway.
// One Run at a time; its fields are not changed while it runs.
type Bridge struct {
	// URL is where the gateway is, and Key an API key.
	URL, Key string
	Client   *http.Client
	// Log is for the person who started the program; the client does not see it.
	Log *slog.Logger

	version    atomic.Value // string: what initialize has agreed on
	mu         sync.Mutex   // of out and writeError
	out        io.Writer
	running    sync.Map // context.CancelFunc of each message on its way, by its id
	writeError error
}

// message is what has to be known of one on its way.
type message struct {
	// ID stays as it was written, a number or a text; nil is a notification, which gets no answer.
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name            string                     `json:"name"`
		URI             string                     `json:"uri"`
		ProtocolVersion string                     `json:"protocolVersion"`
		RequestID       json.RawMessage            `json:"requestId"`
		Meta            map[string]json.RawMessage `json:"_meta"`
	} `json:"params"`
}

// Run carries messages until in ends, and then those on their way to their end; or until ctx ends, which ends them
// too. Its error is that of in or out alone.
func (b *Bridge) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.out = out
	lines, failed := make(chan []byte), make(chan error, 1)
	go func() { // it ends with in, at the latest with the program
		defer close(lines)
		failed <- readLines(ctx, in, lines)
	}()
	var wg sync.WaitGroup
	slots := make(chan struct{}, inFlight)
	for {
		select {
		case <-ctx.Done():
			// What is on its way is cancelled, and ends.
			wg.Wait()
			return nil
		case line, more := <-lines:
			if !more {
				wg.Wait()
				b.mu.Lock()
				defer b.mu.Unlock()
				return errors.Join(<-failed, b.writeError)
			}
			b.dispatch(ctx, line, slots, &wg)
		}
	}
}

// dispatch answers what is no JSON itself, cancels what a notification names, and forwards everything else. It blocks while inFlight
// messages are on their way.
func (b *Bridge) dispatch(ctx context.Context, line []byte, slots chan struct{}, wg *sync.WaitGroup) {
	var m message
	// A batch, which older revisions have, is the gateway's to take apart.
	if line[0] != '[' {
		if err := json.Unmarshal(line, &m); err != nil && !json.Valid(line) {
			b.write(errorMessage(nil, -32700, "the line is no JSON", nil))
			return
		}
	}
	if m.Method == "notifications/cancelled" {
		// An id that is not on its way is ignored, as the protocol asks.
		if cancel, running := b.running.Load(string(m.Params.RequestID)); running {
			cancel.(context.CancelFunc)()
		}
		return
	}
	ctx, done := b.start(ctx, string(m.ID))
	// This is the back-pressure: the next line is not read before there is room.
	slots <- struct{}{}
	carry := func() {
		defer func() { <-slots; done() }()
		// A client that has cancelled a request wants no answer to it.
		if answer := b.forward(ctx, line, m); answer != nil && ctx.Err() == nil {
			b.write(answer)
		}
	}
	if m.Method == "initialize" {
		carry() // what follows is in the revision that it agrees on
		return
	}
	wg.Go(carry)
}

// start makes the context of a message, which a notification can cancel by the message's id.
func (b *Bridge) start(ctx context.Context, id string) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	if id == "" {
		return ctx, cancel
	}
	b.running.Store(id, cancel)
	return ctx, func() {
		b.running.Delete(id)
		cancel()
	}
}

// forward asks the gateway, and returns the line that answers; nil for none.
// A gateway that cannot be reached answers the message with an error: the client on the other side sees no network.
func (b *Bridge) forward(ctx context.Context, line []byte, m message) []byte {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(b.URL, "/")+"/mcp", bytes.NewReader(line))
	if err != nil {
		return b.unreachable(m, err)
	}
	b.headers(r.Header, m)
	resp, err := b.Client.Do(r)
	if err != nil {
		return b.unreachable(m, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return b.unreachable(m, err)
	}
	var answer struct {
		Version string `json:"jsonrpc"`
		Result  struct {
			ProtocolVersion string `json:"protocolVersion"`
		} `json:"result"`
		Error json.RawMessage `json:"error"`
	}
	// Whatever the status: the gateway's own refusals are messages too.
	isMessage := len(body) > 0 && (body[0] == '[' || json.Unmarshal(body, &answer) == nil && answer.Version != "")
	switch {
	case len(body) == 0 && resp.StatusCode/100 == 2:
		return nil
	case isMessage && (m.ID != nil || len(line) > 0 && line[0] == '['):
		if m.Method == "initialize" && answer.Result.ProtocolVersion != "" {
			b.version.Store(answer.Result.ProtocolVersion)
		}
		return body
	case m.ID == nil:
		b.Log.Warn("a message was refused", "method", m.Method, "status", resp.StatusCode)
		return nil
	}
	return refusedMessage(m.ID, resp, body)
}

// headers sets the credential, and what the protocol's revision wants in headers: its own name since 2025-06-18, and method and name of
// the request since 2026-07-28.
func (b *Bridge) headers(h http.Header, m message) {
	if b.Key != "" {
		h.Set("Authorization", "Bearer "+b.Key)
	}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	version, _ := b.version.Load().(string)
	if meta := m.Params.Meta[versionMeta]; meta != nil {
		_ = json.Unmarshal(meta, &version) // what is no text the gateway refuses
	}
	if version == "" || m.Method == "initialize" {
		return
	}
	h.Set("Mcp-Protocol-Version", version)
	if version >= headersSince {
		h.Set("Mcp-Method", m.Method)
		if name := m.Params.Name + m.Params.URI; name != "" && isHeaderValue(name) {
			h.Set("Mcp-Name", name)
		}
	}
}

// isHeaderValue tells that a name can be a header.
func isHeaderValue(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// refusedMessage is the failure envelope of a request that the gateway did not take for a message, as an answer to it.
func refusedMessage(id json.RawMessage, resp *http.Response, body []byte) []byte {
	var envelope struct {
		Error struct {
			Code, Message string
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil || envelope.Error.Code == "" {
		return errorMessage(id, codeRefused, "the gateway answered "+resp.Status, nil)
	}
	return errorMessage(id, codeRefused, envelope.Error.Message, body)
}

// unreachable is the answer to a message that got none.
func (b *Bridge) unreachable(m message, err error) []byte {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	b.Log.Error("no answer", "method", m.Method, "error", err)
	if m.ID == nil {
		return nil
	}
	text := fmt.Sprintf("HUB_URL is %s, and nothing answers there.", b.URL)
	failure, _ := json.Marshal(map[string]any{"ok": false, "error": map[string]any{"code": "E_DB", "message": text, "retryable": true}})
	return errorMessage(m.ID, codeRefused, text, failure)
}

// errorMessage is a JSON-RPC error in one line; without an id it is null, as JSON-RPC 2.0 has it for what could not be read.
func errorMessage(id json.RawMessage, code int, text string, data json.RawMessage) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	// The failure envelope, where there is one, is data: clients show message, programs read data.
	wrong := map[string]any{"code": code, "message": text}
	if data != nil {
		wrong["data"] = data
	}
	line, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": wrong}) // data was read as JSON before
	return line
}

// write writes a message as one line: in JSON a line break is no more than a blank.
func (b *Bridge) write(line []byte) {
	for i, c := range line {
		if c == '\n' || c == '\r' {
			line[i] = ' '
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.out.Write(append(line, '\n')); err != nil && b.writeError == nil {
		b.writeError = fmt.Errorf("standard output: %w", err)
	}
}

// readLines sends the lines of in, without those that are empty.
// A line beyond maxLine ends it with an error: what follows it cannot be told from its rest.
func readLines(ctx context.Context, in io.Reader, lines chan<- []byte) error {
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	for s.Scan() {
		line := bytes.TrimSpace(s.Bytes())
		if len(line) == 0 {
			continue
		}
		select {
		case lines <- bytes.Clone(line):
		case <-ctx.Done():
			return nil
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	return nil
}
