package edge_test

import (
	"strings"
	"testing"

	"hub.internal/services/gateway/edge"
)

func TestHostsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, public := range []string{"hub.example", "ftp://hub.example", "https://", "://"} {
		if _, err := edge.NewHosts(public, nil); err == nil || !strings.Contains(err.Error(), "HUB_PUBLIC_URL") {
			t.Errorf("%q: %v", public, err)
		}
	}
	for _, host := range []string{"", "https://hub.example", "hub.example/x", "*.hub.example", "a b"} {
		if _, err := edge.NewHosts("https://hub.example", []string{host}); err == nil || !strings.Contains(err.Error(), "HUB_HOSTS") {
			t.Errorf("%q: %v", host, err)
		}
	}
}
