package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hub.internal/pkg/localserver"
)

const hostile = "Return-Path: <hub@hub.example>\r\nDelivered-To: kim@partner.example\r\nFrom: " +
	"=?utf-8?q?H=C3=BCb?= <hub@hub.example>\r\nTo: kim@partner.example\r\n" +
	"Subject: <script>alert(1)</script>\r\nList-Unsubscribe: <http://127.0.0.1/unsubscribe/x>\r\nMIME-Version: 1.0\r\nContent-Type: " +
	"multipart/alternative; boundary=b\r\n\r\n" +
	"--b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: " +
	"quoted-printable\r\n\r\nGr=C3=BC=C3=9Fe <b>\r\n--b\r\nContent-Type: text/html; " +
	"charset=utf-8\r\n\r\n<p>Hello</p><script>alert(2)</script>\r\n--b--\r\n"

func TestPages(t *testing.T) {
	dir := t.TempDir()
	handler, err := newPages(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	get := func(path string) (int, http.Header, string) {
		t.Helper()
		resp, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header, string(b)
	}
	if status, _, page := get("/"); status != 200 || !strings.Contains(page, "No mail yet") {
		t.Errorf("empty: %d %s", status, page)
	}
	names := []string{"20260102T030405.000000001Z-aa.eml", "20260102T030406.000000000Z-bb.eml"}
	for i, text := range []string{hostile, "no mail at all"} {
		if err := os.WriteFile(filepath.Join(dir, names[i]), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path          string
		status        int
		has, hasNot   []string
		policy, media string
	}{
		{"/", 200, []string{"Hüb", "&lt;script&gt;alert(1)", "2026-01-02 03:04 UTC", "2 mails", "(no subject)"}, []string{"<script>alert"},
			"default-src 'self'", "text/html"},
		{"/?before=" + names[1], 200, []string{names[0]}, []string{names[1]}, "", ""},
		{"/mail/" + names[0], 200, []string{"Grüße &lt;b&gt;", "<iframe", " sandbox ", "/unsubscribe/x", "kim@partner.example"},
			[]string{"<script>alert"}, "default-src 'self'", ""},
		{"/mail/" + names[1], 200, []string{"There is no text part"}, []string{"<iframe"}, "", ""},
		{"/mail/" + names[0] + "/html", 200, []string{"<p>Hello</p>"}, nil, "sandbox; default-src 'none'", "text/html"},
		{"/mail/" + names[0] + "/download", 200, []string{"boundary=b"}, nil, "", "message/rfc822"},
		{"/mail/none.eml", 404, []string{"There is no mail"}, nil, "default-src 'self'", ""},
		{"/mail/..%2f..%2fetc%2fpasswd", 404, nil, []string{"root:"}, "", ""},
		{"/mail/main.go", 404, nil, nil, "", ""},
	} {
		status, header, page := get(c.path)
		if status != c.status || !strings.HasPrefix(header.Get("Content-Security-Policy"), c.policy) ||
			!strings.HasPrefix(header.Get("Content-Type"), c.media) {
			t.Errorf("%s: %d, %v", c.path, status, header)
		}
		for _, text := range c.has {
			if !strings.Contains(page, text) {
				t.Errorf("%s lacks %q: %s", c.path, text, page)
			}
		}
		for _, text := range c.hasNot {
			if strings.Contains(page, text) {
				t.Errorf("%s has %q", c.path, text)
			}
		}
	}
	if m, err := localserver.OpenMail(
		dir,
		names[0],
	); err != nil || m.HTML != "<p>Hello</p><script>alert(2)</script>" ||
		m.Text != "Grüße <b>" {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestOnlyThisMachineIsListenedTo(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "localhost:0", "example.com:25", "127.0.0.1"} {
		if err := run(
			context.Background(),
			io.Discard,
			addr,
			"127.0.0.1:0",
			t.TempDir(),
		); err == nil ||
			!strings.Contains(err.Error(), "this machine alone") {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
