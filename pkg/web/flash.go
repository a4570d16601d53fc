package web

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
)

// Flash is a message for the next page.
type Flash struct {
	// Kind is "done" or "wrong".
	Kind string `json:"k"`
	Text string `json:"t"`
}

const (
	flashCookie = "flash"
	// flashLifetime in seconds bounds how long a message waits for its page.
	flashLifetime = 60
	maxFlash      = 500
)

// Done tells the next page that something worked.
func Done(w http.ResponseWriter, r *http.Request, text string) { setFlash(w, r, Flash{"done", text}) }

// Wrong tells the next page that something did not work.
func Wrong(w http.ResponseWriter, r *http.Request, text string) { setFlash(w, r, Flash{"wrong", text}) }

// Go sends the browser to a page, after a form was dealt with: reloading that page repeats nothing.
func Go(w http.ResponseWriter, r *http.Request, path string) error {
	http.Redirect(w, r, path, http.StatusSeeOther)
	return nil
}

// Back goes to a page and tells there what was done, or why it was not, where the person can do something about that there: for an
// error of one of the codes. Any other error has a page of its own, with its status.
func Back(w http.ResponseWriter, r *http.Request, path, done string, err error, told ...fault.Code) error {
	switch {
	case err == nil:
		Done(w, r, done)
	case slices.ContainsFunc(told, func(code fault.Code) bool { return fault.Is(err, code) }):
		Wrong(w, r, fault.From(err).Message)
	default:
		return err
	}
	return Go(w, r, path)
}

// setFlash keeps the message in a cookie: the text is escaped like any other when it is shown,
// and over TLS the cookie's prefix keeps other hosts from setting it.
func setFlash(w http.ResponseWriter, r *http.Request, f Flash) {
	f.Text = text.Shorten(f.Text, maxFlash)
	b, err := json.Marshal(f)
	if err != nil {
		return
	}
	http.SetCookie(w, Cookie(r, flashCookie, base64.RawURLEncoding.EncodeToString(b), flashLifetime))
}

// takeFlash reads the message and forgets it. It leaves it to the next page where this one is only fetched ahead.
func takeFlash(w http.ResponseWriter, r *http.Request) Flash {
	text := ReadCookie(r, flashCookie)
	if text == "" || r.Header.Get("Purpose") == "prefetch" {
		return Flash{}
	}
	http.SetCookie(w, Cookie(r, flashCookie, "", -1))
	b, err := base64.RawURLEncoding.DecodeString(text)
	var f Flash
	if err != nil || json.Unmarshal(b, &f) != nil || f.Kind != "done" && f.Kind != "wrong" {
		return Flash{}
	}
	return f
}
