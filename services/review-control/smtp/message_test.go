package smtp

import (
	"context"
	"mime"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	"hub.internal/services/review-control/mailer"
)

// read is a mail as its recipient gets it.
func read(t *testing.T, m mailer.Message) (localserver.Mail, string) {
	t.Helper()
	s := hubtest.NewSMTP(t, localserver.SMTPOptions{})
	if _, err := send(t.Context(), client(t, Config{Addr: s.Addr()}), m); err != nil {
		t.Fatal(err)
	}
	mails := s.Mails()
	if len(mails) != 1 {
		t.Fatalf("%d mails", len(mails))
	}
	return mails[0], string(mails[0].Raw)
}

func TestHeaders(t *testing.T) {
	got, raw := read(t, message())
	for name, want := range map[string]string{
		"From": `"Kim" <kim@company.example>`, "To": `"Lee" <lee@partner.example>`, "Sender": `"Hub" <hub@hub.example>`, "Subject": "Hello",
		"Date": "Thu, 15 Jan 2026 09:00:00 +0000", "Message-Id": "<0123456789abcdef@hub.example>", "Return-Path": "<hub@hub.example>",
		"Delivered-To": "lee@partner.example", "List-Unsubscribe": "<https://hub.example/unsubscribe/abc>",
		"List-Unsubscribe-Post": "List-Unsubscribe=One-Click", "Mime-Version": "1.0", "Content-Type": "text/plain; charset=UTF-8",
		"X-Mailer": "", "User-Agent": "", "Auto-Submitted": "", "Precedence": "", "Bcc": "",
	} {
		if values := got.Header[name]; len(values) > 1 || got.Header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, values, want)
		}
	}
	if got.Text != "Hello Lee\r\n.\r\nBye\r\n" || got.HTML != "" {
		t.Errorf("text %q, HTML %q", got.Text, got.HTML)
	}
	for line := range strings.Lines(raw) {
		if len(line) > 200 || !strings.HasSuffix(line, "\r\n") {
			t.Errorf("line %q", line)
		}
	}
}

func TestSenderIsNamedOnlyWhereItIsAnother(t *testing.T) {
	for name, change := range map[string]func(*mailer.Message){
		"the same": func(m *mailer.Message) { m.Sender = m.From },
		"none":     func(m *mailer.Message) { m.Sender = mailer.Address{} },
	} {
		m := message()
		change(&m)
		got, _ := read(t, m)
		if got.Header.Get("Sender") != "" || got.Header.Get("Return-Path") != "<kim@company.example>" {
			t.Errorf("%s: %q", name, got.Header)
		}
	}
	m := message()
	m.Unsubscribe = ""
	if got, _ := read(t, m); got.Header.Get("List-Unsubscribe") != "" || got.Header.Get("List-Unsubscribe-Post") != "" {
		t.Errorf("%q", got.Header)
	}
}

func TestAlternativesAndForeignLetters(t *testing.T) {
	m := message()
	m.From.Name, m.To.Name = "김민수, \"마케팅\" <a@b.example>", strings.Repeat("이름", 60)
	m.Subject = strings.Repeat("안녕하세요 브랜드 담당자님 ", 12) + "=?utf-8?q?x?="
	m.Text = "안녕하세요\n\n" + strings.Repeat("가나다라 ", 500) + "\n끝"
	m.HTML = "<p>안녕하세요</p>\n<p>" + strings.Repeat("가나다라 ", 500) + "</p>"
	got, raw := read(t, m)
	if !strings.HasPrefix(got.Header.Get("Content-Type"), "multipart/alternative") || got.Text != m.Text || got.HTML != m.HTML {
		t.Errorf("%s\ntext %q\nHTML %q", got.Header.Get("Content-Type"), got.Text, got.HTML)
	}
	if strings.Index(raw, "text/plain") > strings.Index(raw, "text/html") {
		t.Error("the preferred part is not the last")
	}
	from, err := got.Header.AddressList("From")
	if err != nil || len(from) != 1 || from[0].Name != m.From.Name || from[0].Address != m.From.Email {
		t.Errorf("From %v, %v", from, err)
	}
	to, err := got.Header.AddressList("To")
	if err != nil || len(to) != 1 || to[0].Name != m.To.Name {
		t.Errorf("To %v, %v", to, err)
	}
	if got.Subject != m.Subject {
		t.Errorf("subject %q, want %q", got.Subject, m.Subject)
	}
	head, _, _ := strings.Cut(raw, "\r\n\r\n")
	for line := range strings.Lines(head) {
		if len(line) > 120 || strings.IndexFunc(line, func(r rune) bool { return r > 0x7e }) >= 0 {
			t.Errorf("header line %q", line)
		}
	}
	if len(raw) > 3*len(m.Text+m.HTML)/2+4000 {
		t.Errorf("%d bytes for %d", len(raw), len(m.Text+m.HTML))
	}
}

// Subjects and names arrive as they were approved, and the start of each stands behind its
// header's name, where every reader finds it.
func TestSubjectsAndNames(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("x", 74) + "  " + strings.Repeat("y", 80) + "   Bcc: z", strings.Repeat("word ", 60), "a\tb", "", "Ünï  cödé",
		"{{x}} & <b>", " in front", "behind ",
		strings.Repeat("x", 998), strings.Repeat("x", longestWord) + " y", strings.Repeat("한", 998), strings.Repeat("😀 ", 400),
		"=?utf-8?q?x?=", "=?utf-8?b?eA==?= and more", "가나다라마바사아자차카타", `Kim, Lee "Q" \ x`,
	} {
		m := message()
		m.Subject, m.From.Name, m.To.Name, m.Sender.Name = text, text, text, text
		got, raw := read(t, m)
		plain, err := new(mime.WordDecoder).DecodeHeader(got.Header.Get("Subject"))
		if err != nil || plain != text {
			t.Errorf("%q came as %q, %v", text, plain, err)
		}
		for _, name := range []string{"From", "To", "Sender"} {
			if list, err := got.Header.AddressList(name); err != nil || len(list) != 1 || list[0].Name != text {
				t.Errorf("%s %q came as %q, %v", name, text, got.Header.Get(name), err)
			}
		}
		head, _, _ := strings.Cut(raw, "\r\n\r\n")
		if strings.Contains(head, ":\r\n") || strings.Contains(head, "\r\n \r\n") || got.Header.Get("Bcc") != "" || got.Text == "" {
			t.Errorf("%q:\n%s", text, raw)
		}
		for line := range strings.Lines(head) {
			if len(line) > 100 {
				t.Errorf("%q: line %q", text, line)
			}
		}
		if strings.Contains(text, "=?") && strings.Contains(head, text) {
			t.Errorf("%q looks encoded, and readers would decode it", text)
		}
	}
	if raw := mailbox(mailer.Address{Name: "가나다라마바사아자차카타", Email: "lee@partner.example"}); strings.Count(raw,
		"=?") != 1 {
		t.Errorf("a name of a usual length is in pieces: %s", raw)
	}
}

// What could end a header, an address or a command is refused before anybody is asked.
func TestNoHeaderIsInjected(t *testing.T) {
	s := hubtest.NewSMTP(t, localserver.SMTPOptions{})
	c := client(t, Config{Addr: s.Addr()})
	for name, field := range map[string]func(*mailer.Message) *string{
		"id":           func(m *mailer.Message) *string { return &m.ID },
		"from name":    func(m *mailer.Message) *string { return &m.From.Name },
		"from":         func(m *mailer.Message) *string { return &m.From.Email },
		"to name":      func(m *mailer.Message) *string { return &m.To.Name },
		"to":           func(m *mailer.Message) *string { return &m.To.Email },
		"sender name":  func(m *mailer.Message) *string { return &m.Sender.Name },
		"sender email": func(m *mailer.Message) *string { return &m.Sender.Email },
		"subject":      func(m *mailer.Message) *string { return &m.Subject },
		"unsubscribe":  func(m *mailer.Message) *string { return &m.Unsubscribe },
	} {
		for _, bad := range []string{"\r\nBcc: evil@evil.example", "\nBcc: evil@evil.example", "\rBcc: evil@evil.example", "\x00",
			"\r\n\r\n<p>", "\r\n.\r\nMAIL FROM:<x@y.example>", "\u0085", "\x7f"} {
			for _, where := range []func(string) string{func(s string) string { return s + bad }, func(s string) string { return bad + s }} {
				m := message()
				*field(&m) = where(*field(&m))
				begun, err := send(t.Context(), c, m)
				expect(t, err, mailer.Never, "")
				if begun {
					t.Errorf("%s: %q was begun", name, bad)
				}
			}
		}
	}
	for _, address := range []string{"", "lee", "lee@partner", "lee@partner.example, x@y.example", "<lee@partner.example>",
		"Lee <lee@partner.example>", "lee@partner.example> SIZE=1", "\"a b\"@partner.example", "lé@partner.example", "lee@pärtner.example"} {
		m := message()
		m.To.Email = address
		_, err := send(t.Context(), c, m)
		expect(t, err, mailer.Never, "is not one bare e-mail address")
	}
	for _, address := range []string{"javascript:x", "https://hub.example/a b", "https://hub.example/>,<mailto:x@y.example",
		"/unsubscribe/x", "mailto:x@y.example", "https://hub.example/" + strings.Repeat("x", 900)} {
		m := message()
		m.Unsubscribe = address
		_, err := send(t.Context(), c, m)
		expect(t, err, mailer.Never, "unsubscribe address")
	}
	for _, id := range []string{"", "x", "a b@c", "<a@b>", "a@b@c", "é@b"} {
		m := message()
		m.ID = id
		_, err := send(t.Context(), c, m)
		expect(t, err, mailer.Never, "message id")
	}
	if n := len(s.Mails()); n != 0 {
		t.Errorf("%d mails", n)
	}
}

// A body may hold what it likes: it stays a body.
func TestBodiesStayBodies(t *testing.T) {
	m := message()
	m.Text = "a\r\n.\r\nQUIT\r\n..b\n.c\rd\x00e " + strings.Repeat("x", 5000) + "\r\n--boundary--\r\n"
	m.HTML = "<p>.\n.\n</p>\n.\n"
	got, _ := read(t, m)
	if want := "a\r\n.\r\nQUIT\r\n..b\r\n.c\r\nd\x00e " + strings.Repeat("x", 5000) + "\r\n--boundary--\r\n"; got.Text != want {
		t.Errorf("text %.60q…", got.Text)
	}
	if got.HTML != "<p>.\r\n.\r\n</p>\r\n.\r\n" {
		t.Errorf("HTML %q", got.HTML)
	}
}

func TestALargeMail(t *testing.T) {
	s := hubtest.NewSMTP(t, localserver.SMTPOptions{})
	m := message()
	m.HTML = strings.Repeat("<p>브랜드 담당자님 안녕하세요</p>\n", 100_000)
	began := time.Now()
	if err := client(t, Config{Addr: s.Addr()}).Send(t.Context(), m, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes in %v", len(m.HTML), time.Since(began))
	if got := s.Mails(); len(got) != 1 || len(got[0].HTML) != len(m.HTML) {
		t.Errorf("%d mails", len(got))
	}
}
