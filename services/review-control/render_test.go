package reviewcontrol_test

import (
	"bufio"
	"context"
	"fmt"
	"html"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/localserver"
	reviewcontrol "hub.internal/services/review-control"
	"hub.internal/services/review-control/body"
	"hub.internal/services/review-control/mailer"
	"hub.internal/services/review-control/smtp"
)

// TestContentHash: each part of a content counts, and where it ends.
func TestContentHash(t *testing.T) {
	base := mailer.Content{From: mailer.Address{Name: "a", Email: "b"}, Sender: mailer.Address{Name: "c", Email: "d"},
		To:      mailer.Address{Name: "e", Email: "f"},
		Subject: "g", HTML: "h", Text: "i"}
	seen := map[string]string{base.Hash(): "as it is"}
	try := func(what string, c mailer.Content) {
		if earlier, same := seen[c.Hash()]; same {
			t.Errorf("%s and %s have one hash", what, earlier)
		}
		seen[c.Hash()] = what
	}
	parts := func(c *mailer.Content) []*string {
		return []*string{&c.From.Name, &c.From.Email, &c.Sender.Name, &c.Sender.Email, &c.To.Name, &c.To.Email, &c.Subject, &c.HTML, &c.Text}
	}
	for i := range parts(&base) {
		c := base
		*parts(&c)[i] += "x"
		try(fmt.Sprint("part ", i, " with more"), c)
		c = base
		*parts(&c)[i] = ""
		try(fmt.Sprint("part ", i, " empty"), c)
		if i > 0 {
			c = base
			*parts(&c)[i-1], *parts(&c)[i] = *parts(&c)[i-1]+*parts(&c)[i], ""
			try(fmt.Sprint("part ", i, " moved to the one before"), c)
		}
	}
	// A field that somebody adds has to be part of the hash, and of this test.
	leaves := 0
	for i := range reflect.TypeFor[mailer.Content]().NumField() {
		if f := reflect.TypeFor[mailer.Content]().Field(i); f.Type.Kind() == reflect.Struct {
			leaves += f.Type.NumField()
		} else {
			leaves++
		}
	}
	if leaves != len(parts(&base)) {
		t.Errorf("a content has %d parts, and the hash knows %d", leaves, len(parts(&base)))
	}
}

// bodies are those of all corpora, by their names.
func bodies(t testing.TB) (names []string, list map[string]string) {
	t.Helper()
	list = map[string]string{}
	unescape := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\f`, "\f", `\0`, "\x00")
	for _, file := range []string{"xss.tsv", "hidden.tsv", "seen.tsv"} {
		f, err := os.Open("body/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			if name, text, ok := strings.Cut(lines.Text(), "\t"); ok && !strings.HasPrefix(name, "#") {
				name = file + "/" + name
				names, list[name] = append(names, name), unescape.Replace(text)
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return names, list
}

// TestWhatIsShownIsWhatLeaves takes every body of the corpora all the way: the bytes of its preview are
// those that the mail server has got, once they are decoded, with a line in the place of pictures elsewhere.
func TestWhatIsShownIsWhatLeaves(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	server := hubtest.NewSMTP(t, localserver.SMTPOptions{})
	client, err := smtp.New(smtp.Config{Addr: server.Addr(), TLS: smtp.None, Hello: "hub.example"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	sending := o.another(func(c *reviewcontrol.Config) { c.Sender = client })
	names, list := bodies(t)
	if len(names) < 900 {
		t.Errorf("%d bodies", len(names))
	}
	if raceEnabled || testing.Short() {
		names = slices.DeleteFunc(names, func(name string) bool { return len(name)%3 != 0 })
	}
	// In plain text, too, and with lines of every kind.
	names = append(names, "text", "long lines", "dots", "spaces", "Korean", "Korean HTML")
	for name, text := range map[string]string{"text": "a\nb\r\nc\rd", "long lines": strings.Repeat("x", 5000) + "\n" +
		strings.Repeat("가", 3000), "dots": ".\n..\n.", "spaces": " a \n\tb \n\n\n", "Korean": "안녕하세요\n끝",
		"Korean HTML": "<p>안녕하세요</p>\n<p>" + strings.Repeat("가나다라 ", 800)} {
		list[name] = text
	}
	id := o.authoring.draft(len(names), func(d *draftRow) {
		d.SenderName, d.SenderEmail = new("Kim\u200b of the shop"), new("kim@shop.example")
		for i, name := range names {
			x := &d.targets[i]
			x.Body, x.HTML, x.Subject = list[name], strings.Contains(name, "tsv/") || strings.Contains(name, "HTML"),
				fmt.Sprintf("%d: Für %s\u202e", i, name)
		}
	})
	if _, err := o.house.send(agent(t.Context()), newKey(), queueing(id)); err != nil {
		t.Fatal(err)
	}
	type page struct{ frame, subject, text string }
	shown := make([]page, len(names))
	for i := range names {
		v, err := o.service.Target(t.Context(), id, i)
		if err != nil {
			t.Fatal(err)
		}
		frame := o.get(fmt.Sprintf("/drafts/%s/targets/%d/preview?of=%s", id, i, v.Rendering.Hash()))
		shown[i] = page{frame, v.Rendering.Subject, v.Rendering.Text}
		if _, err := o.service.Decide(signedIn(t.Context(), ada), ada, id, reviewcontrol.Shown{Index: i, Hash: v.Rendering.Hash()},
			reviewcontrol.Judgement{Choice: reviewcontrol.Approve}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.service.Finish(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	got := map[string]localserver.Mail{}
	for i := range names {
		if again, err := sending.Deliver(context.Background(), id, i); again != 0 || err != nil {
			t.Fatalf("%s, %v, %+v", again, err, o.target(id, i).Delivery)
		}
	}
	for _, m := range server.Mails() {
		got[m.DeliveredTo] = m
	}
	for i, name := range names {
		m, isThere := got[o.target(id, i).ToEmail]
		if !isThere {
			t.Errorf("%s did not arrive", name)
			continue
		}
		if m.HTML != "" && body.Shown(m.HTML) != shown[i].frame || m.HTML == "" &&
			!strings.Contains(shown[i].frame, ">"+html.EscapeString(shown[i].text)+"</pre>") {
			t.Errorf("%s: the frame shows\n%q\nand what arrived is\n%q", name, shown[i].frame, m.HTML)
		}
		if m.Text != shown[i].text || m.Subject != shown[i].subject {
			t.Errorf("%s: %q with the text\n%q\narrived as %q\n%q", name, shown[i].subject, shown[i].text, m.Subject, m.Text)
		}
		if from, err := m.Header.AddressList("From"); err != nil || from[0].Name != "Kim of the shop" ||
			from[0].Address != "kim@shop.example" || m.Header.Get("Sender") != `"Hub" <hub@hub.example>` {
			t.Errorf("%s: from %v, %v", name, from, err)
		}
	}
}

// TestWhatAnEarlierReleaseQueued: its mails keep the layout that it knew, so that what was approved there still leaves, byte for byte.
func TestWhatAnEarlierReleaseQueued(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	queue := func(layout string) reviewcontrol.ID {
		id := o.authoring.draft(1, func(d *draftRow) { d.targets[0].Body, d.targets[0].HTML = "<p>1,200,000</p>", true })
		if _, err := o.house.send(agent(t.Context()), newKey(), queueing(id)); err != nil {
			t.Fatal(err)
		}
		if layout != "" { // the row as a release writes it that knows no layouts
			o.exec(`UPDATE review_control.reviews SET layout = DEFAULT WHERE draft_id = $1`, int64(id))
		}
		return id
	}
	for layout, breaks := range map[string]string{"": "overflow-wrap:break-word", "DEFAULT": "overflow-wrap:anywhere"} {
		id := queue(layout)
		has(t, o.get(fmt.Sprintf("/drafts/%s/targets/0/preview", id)), breaks)
		o.decide(id, 0, reviewcontrol.Approve)
		if _, err := o.service.Finish(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if again := o.deliver(id, 0); again != 0 {
			t.Fatal(again)
		}
		mails := o.sender.mails()
		if d := o.target(id, 0).Delivery; d.State != reviewcontrol.Delivered || !strings.Contains(mails[len(mails)-1].HTML, breaks) {
			t.Errorf("%q: %+v, %s", layout, d, mails[len(mails)-1].HTML)
		}
	}
}
