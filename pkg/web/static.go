package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Static is an answer that is the same for everybody who asks. It is packed when somebody asks for it first, once, and all who
// read it, however slowly, read the same bytes.
type Static struct {
	kind, etag string
	body       []byte
	// packed answers nil where gzip gains nothing. Its tag is another: a tag names bytes.
	packed func() []byte
}

// NewStatic is the answer of a body of this content type. It keeps the body, which must not change.
func NewStatic(kind string, body []byte) *Static {
	sum := sha256.Sum256(body)
	return &Static{kind: kind, etag: `"` + hex.EncodeToString(sum[:6]) + `"`, body: body,
		packed: sync.OnceValue(func() []byte { return gzipped(body) })}
}

// gzipped is a body in the fewest bytes; nil where it has fewer as it is.
func gzipped(body []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is a constant
	}
	_, _ = w.Write(body) // a buffer takes everything
	_ = w.Close()
	if b.Len() >= len(body) {
		return nil
	}
	return b.Bytes()
}

// ServeHTTP answers a GET or HEAD. What the caller has set as Cache-Control stays.
func (s *Static) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", s.kind)
	h.Set("Vary", "Accept-Encoding")
	body, tag := s.body, s.etag
	if takesGzip(strings.Join(r.Header.Values("Accept-Encoding"), ",")) {
		if packed := s.packed(); packed != nil {
			h.Set("Content-Encoding", "gzip")
			body, tag = packed, strings.TrimSuffix(s.etag, `"`)+`-gzip"`
		}
	}
	h.Set("ETag", tag)
	if MatchesETag(r.Header.Get("If-None-Match"), tag) {
		h.Del("Content-Type")
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// MatchesETag tells whether an If-None-Match header names the tag, weakly or not.
func MatchesETag(header, etag string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
			return true
		}
	}
	return false
}
