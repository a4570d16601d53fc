package e2e_test

import (
	"bufio"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTheClientTriggersAndListens: each event that hub pay trigger makes on the simulated provider arrives at hub pay listen, signed
// by Hub for the app, as the message that it is named after.
func TestTheClientTriggersAndListens(t *testing.T) {
	t.Parallel()
	x := newShop(t, 1)
	hub := filepath.Join(x.bin, "hub")
	listen := exec.CommandContext(t.Context(), hub, "pay", "listen", "--addr", "127.0.0.1:0")
	listen.Env = x.environ()
	said, err := listen.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := listen.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := listen.Start(); err != nil {
		t.Fatal(err)
	}
	first, err := bufio.NewReader(said).ReadString('\n')
	_, at, found := strings.Cut(first, "listening at ")
	if at, _, _ = strings.Cut(at, " "); err != nil || !found {
		t.Fatalf("%v: %s", err, first)
	}
	go func() { _, _ = io.Copy(io.Discard, said) }() // it ends with the program
	lines := bufio.NewScanner(out)
	for _, c := range []struct {
		event string
		want  []string
	}{
		{"issued", []string{"payment.vbank.issued"}},
		{"paid", []string{"payment.vbank.issued", "payment.order.paid"}},
		{"failed", []string{"payment.order.failed"}},
		{"canceled", []string{"payment.vbank.issued", "payment.order.canceled"}},
		{"refunded", []string{"payment.order.paid", "payment.order.refunded"}},
		{"reversed", []string{"payment.vbank.issued", "payment.order.paid", "payment.deposit.reversed"}},
		{"attention", []string{"payment.vbank.issued", "payment.order.attention"}},
	} {
		trigger := exec.CommandContext(t.Context(), hub, "pay", "trigger", c.event, "--notify-url", at, "--jq", ".data.order.code")
		trigger.Env = x.environ()
		answer, err := trigger.CombinedOutput()
		code := strings.TrimSpace(string(answer))
		if err != nil || !strings.HasPrefix(code, "po_") {
			t.Fatalf("%s: %v: %s", c.event, err, answer)
		}
		var got []string
		for len(got) < len(c.want) && lines.Scan() {
			if fields := strings.Fields(lines.Text()); fields[2] == code && fields[len(fields)-1] != "again" {
				got = append(got, fields[1])
			}
		}
		slices.Sort(got)
		if slices.Sort(c.want); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.event, got, c.want)
		}
	}
	_ = listen.Process.Kill() // a test of the client ends it well
	_ = listen.Wait()
}
