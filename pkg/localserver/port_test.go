package localserver_test

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"hub.internal/pkg/localserver"
)

// TestFreePort: nobody answers at a free port, and servers may come and go there.
func TestFreePort(t *testing.T) {
	t.Parallel()
	port, err := localserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	for range 3 {
		if _, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("nobody listens: %v", err)
		}
		if !localserver.PortFree(port) {
			t.Error("the port is not free")
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if localserver.PortFree(port) {
			t.Error("two servers may have the port")
		}
		l.Close()
	}
}
