package e2e_test

import (
	"fmt"
	"net/http"
	"net/smtp"
	"path/filepath"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
)

// TestMailSink looks at the pages of the local stack's sink, which show what Hub has sent.
func TestMailSink(t *testing.T) {
	t.Parallel()
	var addrs [2]string
	for i := range addrs {
		port, err := localserver.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		addrs[i] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	sink, err := localserver.StartProgram(
		localserver.Program{
			Path: filepath.Join(checked.build(t), "mailsink"),
			Args: []string{"--smtp", addrs[0], "--web", addrs[1], "--dir", t.TempDir()},
			Dir:  t.TempDir(),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sink.Kill)
	origin := "http://" + addrs[1]
	hubtest.Eventually(t, "the sink answers", func() bool {
		resp, err := http.Get(origin + "/healthz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusNoContent
	})
	p := newPage(t, origin)
	p.Open("/")
	p.Sees("No mail yet")
	p.Inspect("mails-empty")
	for i := range 3 {
		mail := fmt.Sprintf(
			"From: Hub <hub@hub.example>\r\nTo: kim%d@partner.example\r\nSubject: "+
				"A rather long subject <script>alert(1)</script> of mail %d\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"+
				"<h1>Hello</h1><p>How are you?</p>",
			i,
			i,
		)
		if err := smtp.SendMail(
			addrs[0],
			nil,
			"hub@hub.example",
			[]string{fmt.Sprintf("kim%d@partner.example", i)},
			[]byte(mail),
		); err != nil {
			t.Fatal(err)
		}
	}
	p.Open("/")
	p.Sees("3 mails")
	p.Inspect("mails")
	p.Link("A rather long subject <script>alert(1)</script> of mail 2").Click()
	p.Sees("kim2@partner.example")
	p.Inspect("mail")
	if status := p.Open("/mail/none.eml"); status != http.StatusNotFound {
		t.Errorf("a mail that is not there answers %d", status)
	}
	p.Inspect("mail-404")
}
