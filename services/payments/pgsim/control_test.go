package pgsim_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hub.internal/services/payments/pgsim"
)

// TestWhoMayControl: where the control API is open it is so to programs of this machine, and to no page in a browser there.
func TestWhoMayControl(t *testing.T) {
	const secret = "a secret of the simulator"
	for name, c := range map[string]struct {
		open       bool
		peer, host string
		header     [2]string
		want       int
	}{
		"closed":                {false, "127.0.0.1:5000", "127.0.0.1:8090", [2]string{}, 401},
		"closed, secret":        {false, "192.0.2.1:5000", "pg.example", [2]string{"Authorization", "Bearer " + secret}, 200},
		"open":                  {true, "127.0.0.1:5000", "127.0.0.1:8090", [2]string{}, 200},
		"open, by name":         {true, "[::1]:5000", "localhost:8090", [2]string{}, 200},
		"open, IPv6":            {true, "[::1]:5000", "[::1]:8090", [2]string{}, 200},
		"open, default port":    {true, "127.0.0.1:5000", "127.0.0.1", [2]string{}, 200},
		"open, another machine": {true, "192.0.2.1:5000", "127.0.0.1:8090", [2]string{}, 401},
		"open, wrong secret":    {true, "127.0.0.1:5000", "127.0.0.1:8090", [2]string{"Authorization", "Bearer x"}, 401},
		"open, a page":          {true, "127.0.0.1:5000", "127.0.0.1:8090", [2]string{"Origin", "https://evil.example"}, 401},
		"open, a page's form":   {true, "127.0.0.1:5000", "127.0.0.1:8090", [2]string{"Sec-Fetch-Site", "cross-site"}, 401},
		"open, a rebound name":  {true, "127.0.0.1:5000", "evil.example:8090", [2]string{}, 401},
		"open, a proxy":         {true, "127.0.0.1:5000", "127.0.0.1:8090", [2]string{"X-Forwarded-For", "192.0.2.1"}, 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim, err := pgsim.New(pgsim.Config{ClientID: "client-id", Secret: secret, OpenControl: c.open})
			if err != nil {
				t.Fatal(err)
			}
			defer sim.Close()
			r := httptest.NewRequest(http.MethodPost, "/_control/heal", strings.NewReader("{}"))
			r.RemoteAddr, r.Host = c.peer, c.host
			if c.header[0] != "" {
				r.Header.Set(c.header[0], c.header[1])
			}
			w := httptest.NewRecorder()
			if sim.ServeHTTP(w, r); w.Code != c.want {
				t.Errorf("answered %d, want %d: %s", w.Code, c.want, w.Body)
			}
		})
	}
}
