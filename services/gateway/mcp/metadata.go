package mcp

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/services/gateway/edge"
)

// metadataPath is that of the metadata of a protected resource (RFC 9728 section 3).
const metadataPath = "/.well-known/oauth-protected-resource"

// metadata says what a client has to show (RFC 9728 section 2). There is no authorization server: keys are issued by
// the administrators of the gateway.
func (s *Server) metadata(w http.ResponseWriter, r *http.Request) {
	base := s.base(r)
	if base == "" {
		f := fault.New(fault.NotFound, "This gateway does not know its own address: HUB_PUBLIC_URL says it.")
		s.gateway.Refuse(r.Context(), s.gateway.NewCall(r), w, f, 0)
		return
	}
	scopes := []string{}
	for _, e := range s.gateway.Catalog.Entries() {
		scopes = append(scopes, e.Spec.Scope)
	}
	slices.Sort(scopes)
	body, err := json.Marshal(map[string]any{"resource": base + Path, "resource_name": "Hub",
		"bearer_methods_supported": []string{"header"}, "scopes_supported": slices.Compact(scopes)})
	if err != nil {
		s.gateway.Refuse(r.Context(), s.gateway.NewCall(r), w, err, 0)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	h.Set("Access-Control-Allow-Origin", "*") // it is for anybody, and holds nothing of anybody
	_, _ = w.Write(body)                      // the only error left is a reader that has gone
}

// base is where the client reaches the gateway: as configured, else the address that it has reached it at. A name that
// only the client knows it by is not repeated: it may be anybody's. Then it is empty.
func (s *Server) base(r *http.Request) string {
	switch {
	case s.publicURL != "":
		return s.publicURL
	case !edge.IsOwnAddress(r):
		return ""
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// unauthorized adds to a 401 where its client finds out what to show (RFC 9728 section 5.1, RFC 6750 section 3).
func (s *Server) unauthorized(w http.ResponseWriter, r *http.Request, f *fault.Error) {
	if f.Status() != http.StatusUnauthorized {
		return
	}
	var parameters []string
	if base := s.base(r); base != "" {
		parameters = append(parameters, `resource_metadata="`+base+metadataPath+Path+`"`)
	}
	if f.Code != fault.AuthMissing {
		parameters = append(parameters, `error="invalid_token"`)
	}
	w.Header().Set("WWW-Authenticate", strings.TrimSpace("Bearer "+strings.Join(parameters, ", ")))
}
