package service_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"hub.internal/pkg/discover"
	"hub.internal/pkg/service"
)

// TestHealthAsksTheServiceOfItsContainer: it says in its exit what readiness says, at the address that the service was told.
func TestHealthAsksTheServiceOfItsContainer(t *testing.T) {
	var status atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != discover.ReadyPath {
			t.Errorf("asked %s", r.URL.Path)
		}
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(server.Close)
	addr := strings.TrimPrefix(server.URL, "http://")
	_, port, _ := strings.Cut(addr, ":")
	for _, c := range []struct {
		addr   string
		status int64
		says   string
	}{
		{addr, 200, ""},
		{"0.0.0.0:" + port, 200, ""},
		{":" + port, 200, ""},
		{addr, 503, "503"},
		{addr, 404, "404"},
		{"127.0.0.1:1", 200, "refused"},
		{"", 200, "HUB_ADDR"},
		{"nowhere", 200, "HUB_ADDR"},
		{"127.0.0.1:0", 200, "HUB_ADDR"},
	} {
		status.Store(c.status)
		cmd := service.Program[service.Settings]{Name: "tester"}.Command([]string{"HUB_ADDR=" + c.addr})
		cmd.SetArgs([]string{"health"})
		err := cmd.ExecuteContext(t.Context())
		if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q, which answers %d: %v, want %q", c.addr, c.status, err, c.says)
		}
	}
}
