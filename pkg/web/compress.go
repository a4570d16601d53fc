package web

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

const (
	// packedFrom is from how many bytes on a page is compressed: below, a packet carries it anyway.
	packedFrom = 1 << 10
	// jitter is up to how many bytes a compressed page is made longer, by its content. Pages show what somebody has
	// searched for beside the names of others, and the length of what is compressed together would tell whether they
	// have a part in common (BREACH). No page holds a secret that would be worth more than that: forms have no
	// tokens, sessions are in cookies that no page repeats, and whoever opens /unsubscribe/TOKEN has the token.
	jitter = 32
)

var compressing = func() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(packedFrom), gzhttp.RandomJitter(jitter, packedFrom, false), gzhttp.EnableZstd(false))
	if err != nil {
		panic(err) // the options are constants
	}
	return wrap
}()

// Write answers a page that is made: with gzip where the client takes it and the page is not short. The headers, the
// Content-Type among them, are the caller's; a status of 0 is 200. A HEAD gets no body.
func Write(w http.ResponseWriter, r *http.Request, status int, page []byte) {
	compressing(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status != 0 {
			w.WriteHeader(status)
		}
		if r.Method != http.MethodHead {
			_, _ = w.Write(page) // a browser that has gone away
		}
	})).ServeHTTP(w, r)
}

// takesGzip tells whether an Accept-Encoding header takes gzip (RFC 9110, 12.5.3): it names it, or else "*", without
// a quality of 0.
func takesGzip(header string) bool {
	takes := false
	for coding := range strings.SplitSeq(header, ",") {
		name, parameter, _ := strings.Cut(coding, ";")
		key, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		quality, err := strconv.ParseFloat(value, 64)
		wanted := !strings.EqualFold(key, "q") || err == nil && quality > 0
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case "gzip", "x-gzip":
			return wanted
		case "*":
			takes = wanted
		}
	}
	return takes
}
