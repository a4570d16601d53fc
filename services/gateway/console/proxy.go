package console

import (
	"context"
	"net/http"
	"strings"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/web"
	"hub.internal/services/gateway/catalog"
	"hub.internal/services/gateway/edge"
)

// proxy hands the request to its owner and streams the answer back.
func (k *Console) proxy(ctx context.Context, v *visit) error {
	client := k.Edge.Services.Client(v.route.Service)
	if client == nil {
		return edge.UnknownService(v.route.Service)
	}
	// A visitor is nobody yet: a place among the visitors is taken before the owner is asked, and given back with the answer.
	if v.Caller.Kind == "" {
		suspects, err := k.mayLookUp(v)
		if err != nil {
			return err
		}
		leave, err := k.admit(v)
		if err != nil {
			return err
		}
		defer leave()
		v.suspects = suspects
		v.Caller = caller.Caller{Kind: caller.Visitor, Service: "console", RequestID: v.RequestID}
	}
	return client.Proxy(v.w, v.r.WithContext(caller.With(ctx, v.Caller)),
		func(h http.Header) { k.prepareRequest(v, h) },
		func(resp *http.Response) error { return k.editResponse(ctx, v, resp) })
}

// prepareRequest makes the headers of a request those that its owner is told. An API key is for the API; the session's secret
// is for the gateway alone.
func (k *Console) prepareRequest(v *visit, h http.Header) {
	h.Del("Authorization")
	h.Del("X-Api-Key")
	withoutCookie(h, web.CookieName(web.SessionCookie, k.PlainCookies))
	h.Set("X-Forwarded-For", v.Address)
	h.Set("X-Request-Id", v.RequestID)
	if k.PlainCookies {
		h.Set(web.PlainHeader, "1")
	}
	if tabs := web.EncodeNavigation(k.tabs(v), v.r.URL.Path); tabs != "" && v.html() {
		h.Set(web.NavigationHeader, tabs)
	}
}

// editResponse takes out of an owner's answer what is for the gateway, or returns the fault that is answered in its place.
func (k *Console) editResponse(ctx context.Context, v *visit, resp *http.Response) error {
	if err := k.recordLookup(ctx, v, resp.StatusCode); err != nil {
		return err
	}
	if resp.Header.Get(rpc.FaultHeader) != "" {
		return remote.ReadFault(resp)
	}
	// What ServeMux says of a path or a method that its service does not have.
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") && !web.Below(v.route.Prefix, "/assets") {
		switch resp.StatusCode {
		case http.StatusNotFound:
			return fault.New(fault.NotFound, "There is nothing at %s.", catalog.Shown(v.r.URL.Path))
		case http.StatusMethodNotAllowed:
			allow := resp.Header.Get("Allow")
			v.w.Header().Set("Allow", allow)
			return edge.NotAllowed(v.r.Method, allow)
		}
	}
	for _, c := range resp.Cookies() {
		if c.Name == web.CookieName(web.SessionCookie, k.PlainCookies) && v.secret != "" {
			k.Sessions.Forget(v.secret)
		}
	}
	// What the owner says of these replaces what setHeaders has said.
	for _, name := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy",
		"Cross-Origin-Opener-Policy", "Cache-Control", "Vary"} {
		if len(resp.Header.Values(name)) > 0 {
			v.w.Header().Del(name)
		}
	}
	if resp.Header.Get(web.NavigationHeader) != "" {
		k.Menus.refresh(ctx) // whoever has changed a menu sees it on the next page
	}
	for _, name := range []string{"X-Request-Id", "Strict-Transport-Security", web.NavigationHeader} {
		resp.Header.Del(name)
	}
	return nil
}

// withoutCookie drops one cookie from a request's header.
func withoutCookie(h http.Header, name string) {
	lines := h.Values("Cookie")
	h.Del("Cookie")
	for _, line := range lines {
		var kept []string
		for part := range strings.SplitSeq(line, ";") {
			part = strings.TrimSpace(part)
			if n, _, _ := strings.Cut(part, "="); part != "" && strings.TrimSpace(n) != name {
				kept = append(kept, part)
			}
		}
		if len(kept) > 0 {
			h.Add("Cookie", strings.Join(kept, "; "))
		}
	}
}
