package service_test

import (
	"bytes"
	"crypto/x509"
	"os"
	"os/exec"
	"strings"
	"testing"

	"hub.internal/pkg/service"
)

func TestTheVersionIsTheRelease(t *testing.T) {
	if service.Release() != "dev" {
		t.Errorf("what is not released is called %s", service.Release())
	}
	var out bytes.Buffer
	c := service.Program[service.Settings]{Name: "demo", Short: "A demonstration"}.Command(nil)
	c.SetArgs([]string{"--version"})
	c.SetOut(&out)
	if err := c.Execute(); err != nil || out.String() != "demo version dev\n" {
		t.Errorf("%v %q", err, out.String())
	}
}

// TestRootsOfAnEmptyImage: a program on a machine without roots of trust has its own.
func TestRootsOfAnEmptyImage(t *testing.T) {
	if os.Getenv("SSL_CERT_FILE") == "" { // a process reads the system's roots once
		cmd := exec.Command(os.Args[0], "-test.run=^TestRootsOfAnEmptyImage$", "-test.v")
		cmd.Env = append(os.Environ(), "SSL_CERT_FILE=/nonexistent", "SSL_CERT_DIR=/nonexistent")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	roots, err := x509.SystemCertPool()
	if err != nil || roots.Equal(x509.NewCertPool()) {
		t.Errorf("%v: there are none", err)
	}
}
