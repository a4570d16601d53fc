package web

import (
	"net/http"
	"strings"
)

// policy is the Content-Security-Policy of every page: nothing inline, nothing from elsewhere.
const policy = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"frame-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Secure sets the headers of a page. A page that needs another policy (a sandboxed preview)
// sets its own Content-Security-Policy afterwards.
func Secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	// Whether htmx asks or the browser does makes two answers of one address.
	h.Set("Vary", "HX-Request")
}

// allowForm lets forms of this answer end at another origin.
func allowForm(h http.Header, origin string) {
	if strings.ContainsAny(origin, " ;,'\"") {
		return
	}
	h.Set("Content-Security-Policy", strings.Replace(h.Get("Content-Security-Policy"), "form-action 'self'", "form-action 'self' "+origin, 1))
}

// PlainHeader says that cookies cannot be Secure, because the console is used over plain HTTP
// (HUB_INSECURE_COOKIES at the gateway).
const PlainHeader = "Hub-Plain-Cookies"

// Cookie makes a cookie of this console: for every path, not for scripts, not from other sites,
// and with the prefix __Host- where it can be Secure. A maxAge of 0 lives as long as the
// browser; a negative one removes the cookie.
func Cookie(r *http.Request, name, value string, maxAge int) *http.Cookie {
	plain := r.Header.Get(PlainHeader) != ""
	return &http.Cookie{
		Name: CookieName(name, plain), Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: !plain, SameSite: http.SameSiteLaxMode,
	}
}

// ReadCookie returns a cookie that Cookie has set, or "".
func ReadCookie(r *http.Request, name string) string {
	c, err := r.Cookie(CookieName(name, r.Header.Get(PlainHeader) != ""))
	if err != nil {
		return ""
	}
	return c.Value
}

// CookieName is __Host-hub, __Host-hub-flash, …, or hub_session, hub_flash, … over plain HTTP.
func CookieName(name string, plain bool) string {
	switch {
	case plain:
		return "hub_" + name
	case name == SessionCookie:
		return "__Host-hub"
	}
	return "__Host-hub-" + name
}

// SessionCookie names the cookie that holds a session's secret. Only the gateway reads it, and
// no service sees it.
const SessionCookie = "session"

// BrowserCookie names the cookie that holds what a browser is known by. Auth gives it to who signs in, and knows whose it is.
const BrowserCookie = "browser"

// LanguageCookie names the cookie that holds the language in which the reader wants the console, by its code.
const LanguageCookie = "language"
