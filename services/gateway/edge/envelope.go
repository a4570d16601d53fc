package edge

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/web"
	"hub.internal/services/gateway/catalog"
	"hub.internal/services/gateway/reference"
)

// head is the envelope in front of data, which is copied through, byte for byte. A route's has no name.
func (c *Call) head(name string, count int) []byte {
	b := append(make([]byte, 0, 160), `{"ok":true`...)
	if name != "" {
		b = AppendQuote(append(b, `,"tool":`...), name)
	}
	b = append(b, `,"count":`...)
	b = strconv.AppendInt(b, int64(count), 10)
	b = append(b, `,"request_id":`...)
	b = AppendQuote(b, c.RequestID)
	b = append(b, `,"took_ms":`...)
	b = strconv.AppendInt(b, c.Took(), 10)
	return append(b, `,"data":`...)
}

// Took is how long ago the call began, in milliseconds.
func (c *Call) Took() int64 { return time.Since(c.Started).Milliseconds() }

// AppendQuote appends a text as a JSON string to b.
func AppendQuote(b []byte, s string) []byte {
	// The error is about invalid UTF-8, which is replaced all the same.
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// Write implements Response: it streams a service's data in the success envelope. When the service
// fails in the middle, the connection is cut: half an answer must not look whole.
func (a *Answer) Write(c *Call, w http.ResponseWriter) {
	defer a.Data.Close()
	name := c.Name
	if c.Entry.Route != nil {
		name = "" // the envelope below /v1 has no tool
	}
	head := c.head(name, a.Count)
	h := c.Headers(w)
	if a.Length >= 0 {
		h.Set("Content-Length", strconv.FormatInt(int64(len(head))+a.Length+1, 10))
	}
	if a.Replayed {
		h.Set(rpc.ReplayedHeader, "true")
	}
	if a.Location != "" {
		h.Set("Location", a.Location)
	}
	if a.Status != 0 {
		w.WriteHeader(a.Status)
	}
	if _, err := w.Write(head); err != nil {
		return
	}
	if _, err := io.Copy(w, a.Data); err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write([]byte{'}'})
}

// Document answers data that the gateway made itself, or 304 when the caller has it.
type Document struct{ *catalog.Document }

// Write implements Response. Other answers may be reading the data too, so they are not copied.
func (d Document) Write(c *Call, w http.ResponseWriter) {
	w.Header().Set("ETag", d.ETag)
	w.Header().Set("Cache-Control", "private, no-cache")
	w.Header().Set("Vary", "Authorization, X-API-Key")
	if web.MatchesETag(c.IfNoneMatch, d.ETag) {
		c.Headers(w).Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	head := c.head(d.Tool, d.Count)
	c.Headers(w).Set("Content-Length", strconv.Itoa(len(head)+len(d.Data)+1))
	for _, part := range [][]byte{head, d.Data, {'}'}} {
		if _, err := w.Write(part); err != nil {
			return // the reader has gone
		}
	}
}

// Headers sets what every answer in JSON says, and returns them all.
func (c *Call) Headers(w http.ResponseWriter) http.Header {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Request-Id", c.RequestID)
	h.Set("X-Content-Type-Options", "nosniff")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	c.Limits.headers(h)
	return h
}

// failure is the failure envelope (CONTRACT.md 1.2).
type failure struct {
	OK    bool        `json:"ok"`
	Error failedError `json:"error"`
	// LinkURL is that of the details, for ACCOUNT_LINK_REQUIRED: SPEC.md 3.1 has it there, too.
	LinkURL   string `json:"link_url,omitempty"`
	RequestID string `json:"request_id"`
	TookMS    int64  `json:"took_ms"`
}

// failedError is its member error.
type failedError struct {
	Code      fault.Code `json:"code"`
	Message   string     `json:"message"`
	Details   any        `json:"details,omitempty"`
	Retryable bool       `json:"retryable"`
}

// WriteFailure answers the failure envelope; status 0 takes the code's.
func (c *Call) WriteFailure(w http.ResponseWriter, f *fault.Error, status int) {
	h := c.Headers(w)
	if f.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(WholeSeconds(f.RetryAfter)))
	}
	if status == 0 {
		status = f.Status()
	}
	if c.Plain {
		writePlain(w, status)
		return
	}
	body := c.Failure(f)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// Failure is the failure envelope.
func (c *Call) Failure(f *fault.Error) []byte {
	answer := failure{Error: failedError{f.Code, f.Message, f.Details, f.Retryable()}, RequestID: c.RequestID, TookMS: c.Took()}
	if required, ok := f.Details.(linkRequired); ok {
		answer.LinkURL = required.LinkURL
	}
	body, err := reference.PlainJSON(answer)
	if err != nil {
		answer.Error.Details = nil
		body, _ = reference.PlainJSON(answer)
	}
	return body
}

// writePlain answers a failure where nobody knows the envelope.
func writePlain(w http.ResponseWriter, status int) {
	h := w.Header()
	Sandbox(h)
	text := http.StatusText(status) + "\n"
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// Sandbox sets the headers of what others have said, on the host that the console has: no browser runs it.
func Sandbox(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	h.Set("Referrer-Policy", "no-referrer")
}
