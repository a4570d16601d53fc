package mcp_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hub.internal/pkg/hubtest"
)

// copied is one of the guides of /docs, with what it takes to run it as a caller would who has copied it.
type copied struct {
	name, dir string
	command   []string // with its file
}

// programs are those of a guide; tail is put behind the code of each by the ending of its file.
func programs(t *testing.T, guide string, tail map[string]string) (list []copied) {
	t.Helper()
	_, node := installClients(t)
	for ending, command := range map[string][]string{"sh": {"sh", "-eu"}, "py": {"python3"}, "ts": {node}, "go.txt": {"go", "run"}} {
		from := filepath.Join(hubtest.Root(t), "services", "gateway", "reference", "guides", guide+"."+ending)
		code, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		p := copied{name: guide + "." + ending, dir: t.TempDir(), command: command}
		file := filepath.Join(p.dir, map[string]string{"sh": "guide.sh", "py": "guide.py", "ts": "guide.mts", "go.txt": "main.go"}[ending])
		end := tail[ending]
		p.command = append(p.command, file)
		if ending == "go.txt" && end != "" { // a file of its own, with what it imports
			file := filepath.Join(p.dir, "end.go")
			if err := os.WriteFile(file, []byte(end), 0o600); err != nil {
				t.Fatal(err)
			}
			p.command, end = append(p.command, file), ""
		}
		if err := os.WriteFile(file, []byte(string(code)+end), 0o600); err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

// run runs a program with an environment; it is skipped where its language is not there.
func (p copied) run(t *testing.T, dir string, env ...string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath(p.command[0]); err != nil {
		t.Skipf("no %s here; the guide is run with it", p.command[0])
	}
	cmd := exec.CommandContext(t.Context(), p.command[0], p.command[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// here is this package's directory, whose module has what the guides in Go import.
func here(t *testing.T) string {
	t.Helper()
	return filepath.Join(hubtest.Root(t), "services", "gateway", "mcp")
}

// TestTheGuidesOfDocsSign: each program makes a token as the contract has it, and calls with it.
func TestTheGuidesOfDocsSign(t *testing.T) {
	t.Parallel()
	const secret = "a secret of the app, which is long enough"
	for _, p := range programs(t, "servicejwt", nil) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			tokens := make(chan string, 1)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				tokens <- strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
				_, _ = fmt.Fprint(w, `{"ok":true}`)
			}))
			t.Cleanup(s.Close)
			out, err := p.run(t, here(t), "HUB_URL="+s.URL, "HUB_SERVICE_CODE=shop", "HUB_LINKED_USER=u-77", "HUB_SERVICE_SECRET="+secret)
			if err != nil || strings.TrimSpace(out) != `{"ok":true}` {
				t.Fatalf("%v: %s", err, out)
			}
			claims := jwt.MapClaims{}
			_, err = jwt.ParseWithClaims(<-tokens, claims, func(*jwt.Token) (any, error) { return []byte(secret), nil },
				jwt.WithValidMethods([]string{"HS256"}), jwt.WithAudience("hub"), jwt.WithIssuer("shop"), jwt.WithSubject("u-77"),
				jwt.WithExpirationRequired(), jwt.WithIssuedAt())
			lasts, _ := claims["exp"].(float64)
			issued, _ := claims["iat"].(float64)
			if id, _ := claims["jti"].(string); err != nil || len(id) < 20 || lasts-issued != 60 || len(claims) != 6 {
				t.Errorf("%v: %v", err, claims)
			}
		})
	}
}

// verifies end the programs that verify: they read the headers from the environment and the body from a file.
var verifies = map[string]string{
	"py": `
import os
verify(os.environ["HUB_WEBHOOK_SECRET"], {"webhook-id": os.environ["id"], "webhook-timestamp": os.environ["timestamp"],
                                          "webhook-signature": os.environ["signatures"]}, open("body", "rb").read())
`,
	"ts": `
import { readFileSync } from "node:fs";
const e = process.env as Record<string, string>;
const headers = { "webhook-id": e.id, "webhook-timestamp": e.timestamp, "webhook-signature": e.signatures };
verify(e.HUB_WEBHOOK_SECRET, headers, readFileSync("body"));
`,
	"go.txt": `package main

import (
	"net/http"
	"os"
)

func main() {
	body, err := os.ReadFile("body")
	h := http.Header{"Webhook-Id": {os.Getenv("id")}, "Webhook-Timestamp": {os.Getenv("timestamp")},
		"Webhook-Signature": {os.Getenv("signatures")}}
	if err == nil {
		err = verify(os.Getenv("HUB_WEBHOOK_SECRET"), h, body)
	}
	if err != nil {
		panic(err)
	}
}
`,
}

// TestTheGuidesOfDocsVerify: each program takes what Hub signs, also beside the signature of a secret that leaves, and nothing else.
func TestTheGuidesOfDocsVerify(t *testing.T) {
	t.Parallel()
	key, body := []byte("the key of a receiver, 32 bytes."), []byte("{\"type\":\"payment.order.paid\",\"data\":{\"orderName\":\"리터\"}}\n")
	sign := func(key []byte, at time.Time) string {
		mac := hmac.New(sha256.New, key)
		_, _ = fmt.Fprintf(mac, "msg_1.%d.%s", at.Unix(), body)
		return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	for _, p := range programs(t, "notification", verifies) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			other := []byte("another")
			for name, c := range map[string]struct {
				age   time.Duration
				keys  [][]byte // that it is signed with
				body  []byte
				holds bool
			}{
				"signed":            {0, [][]byte{key}, body, true},
				"by two secrets":    {0, [][]byte{other, key}, body, true},
				"by another secret": {0, [][]byte{other}, body, false},
				"another body":      {0, [][]byte{key}, append(body[:len(body)-1:len(body)-1], ' ', '\n'), false},
				"an hour ago":       {time.Hour, [][]byte{key}, body, false},
				"no signature":      {0, nil, body, false},
			} {
				at := time.Now().Add(-c.age)
				var signatures []string
				for _, key := range c.keys {
					signatures = append(signatures, sign(key, at))
				}
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "body"), c.body, 0o600); err != nil {
					t.Fatal(err)
				}
				out, err := p.run(t, dir, "HUB_WEBHOOK_SECRET=whsec_"+base64.StdEncoding.EncodeToString(key), "id=msg_1",
					"timestamp="+strconv.FormatInt(at.Unix(), 10), "signatures="+strings.Join(signatures, " "), "GOWORK=off", "GO111MODULE=off")
				if (err == nil) != c.holds {
					t.Errorf("%s: %v: %s", name, err, out)
				}
			}
		})
	}
}
