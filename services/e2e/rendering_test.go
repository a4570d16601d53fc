package e2e_test

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"

	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/markup"
	"hub.internal/services/review-control/body"
)

// mailBodies are those of all corpora, and usual mails.
func mailBodies(t testing.TB) (list []vector) {
	t.Helper()
	for _, name := range []string{"xss.tsv", "hidden.tsv", "seen.tsv"} {
		f, err := os.Open(filepath.Join(hubtest.Root(t), "services/review-control/body/testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			if vectorName, text, ok := strings.Cut(lines.Text(), "\t"); ok && !strings.HasPrefix(vectorName, "#") {
				list = append(list, vector{name + "/" + vectorName, "<p>Dear reader,</p>" + printable(unescape.Replace(text))})
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i, text := range usualMails {
		list = append(list, vector{fmt.Sprint("usual/", i), text})
	}
	return list
}

// usualMails are such as are sent to partners.
var usualMails = []string{
	`<p>Dear Ms Kim,</p><p>we have read your page, and think that <b>your brand</b> fits our readers well. ` +
		`In January 184 people applied for your last campaign, which is more than twice of what others get.</p><p><a ` +
		`href="https://hub.example/offer?a=1&amp;b=2">See the offer</a></p><p>Kind regards,<br>Lee Junho<br><span ` +
		`style="color:#777;font-size:12px">Hub Marketing, Seoul</span></p>`,
	`<table width="600" align="center" cellpadding="0" cellspacing="0" bgcolor="#ffffff"><tr><td ` +
		`style="padding:24px;background:#036;color:#fff;font-size:20px">Hub</td></tr><tr><td style="padding:24px"><h1 ` +
		`style="font-size:22px">안녕하세요, 한빛 글로우 담당자님</h1><p>지난 캠페인에 184명이 신청했습니다. ` +
		`다음 캠페인을 함께 준비하고 싶습니다.</p>` +
		`<table cellpadding="0" cellspacing="0"><tr><td bgcolor="#0066cc" style="padding:12px 24px;border-radius:4px"><a ` +
		`href="https://hub.example/x" style="color:#fff;text-decoration:none">자세히 보기</a></td></tr></table></td></tr><tr><td ` +
		`style="padding:16px 24px;font-size:12px;color:#888">Hub, 서울특별시 강남구</td></tr></table>`,
	`<h2>Our numbers</h2><table border="1" cellpadding="6" style="border-collapse:collapse;width:100%"><thead><tr><th>Campaign</th>` +
		`<th>Offers</th><th>Applications</th></tr></thead><tbody><tr><td>Winter glow</td><td align="right">20</td>` +
		`<td align="right">184</td></tr><tr><td>Spring tea, with a rather long name</td><td align="right">15</td>` +
		`<td align="right">92</td></tr></tbody></table><ul><li>One</li><li>Two<ol><li>deeper</li></ol></li></ul>` +
		`<blockquote>As you have said yourself: it works.</blockquote><hr><pre>code   and
  lines</pre>`,
	`<div style="max-width:560px;margin:0 auto;font-family:Georgia,serif;line-height:1.6"><p ` +
		`style="font-size:18px;letter-spacing:.5px">A letter</p><p>` + strings.Repeat(
		"It goes on for a while, as letters do. ",
		18,
	) + `</p><p style="text-align:right"><em>The sender</em></p></div>`,
	`<p>` + strings.Repeat(
		"WWWMMM ",
		60,
	) + `</p><p>` + strings.Repeat(
		"supercalifragilisticexpialidocious",
		12,
	) + `</p><p>` + strings.Repeat(
		"한국어와 日本語 😀 ",
		30,
	) + `</p><p>https://hub.example/` + strings.Repeat(
		"path/",
		60,
	) + `</p>`,
	`<p dir="rtl">مرحبا بكم، هذا عرض خاص لكم من متجرنا</p><dl><dt>Term</dt><dd>What it ` +
		`is</dd></dl><center><font size="5" color="#aa0000">Sale</font></center><p style="padding:10px 20px;border:2px solid ` +
		`#ccc;background:#fafafa">Boxed <span style="padding:0 8px;background:#ffd">marked</span> text</p>`,
	`<table width="100%"><tr><td width="90%">wide</td><td>` + strings.Repeat(
		"narrow words ",
		8,
	) + `</td></tr></table><table><tr><td width="200">a</td><td width="300">b</td><td width="400">c and more words</td></tr></table>`,
}

// made is a random mail of what can stay, as hard to lay out as possible.
func made(r *rand.Rand) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	words := func() string {
		return strings.TrimSpace(
			strings.Repeat(pick("word ", "Wider Words ", "한국어 ", "MMMMMMMMMMMMMMMMMMMM ", "a", "i l ", "x\u00a0y\u00a0"), 1+r.IntN(12)),
		)
	}
	style := func() string {
		var list []string
		for range r.IntN(4) {
			list = append(
				list,
				pick(
					"padding:60px",
					"padding:12px 30px",
					"padding-left:60px",
					"margin:60px",
					"margin:0 0 40px",
					"border:20px solid #ccc",
					"font-size:8px",
					"font-size:40px",
					"font-size:72px",
					"line-height:1",
					"line-height:3",
					"letter-spacing:3px",
					"letter-spacing:-.5px",
					"width:1200px",
					"width:30%",
					"max-width:100px",
					"height:300px",
					"font-family:courier new",
					"font-family:verdana",
					"font-weight:bold",
					"white-space:pre-wrap",
					"text-align:right",
					"background-color:#eee",
					"border-radius:30px",
					"list-style-type:none",
					"text-transform:uppercase",
					"border-spacing:20px",
					"vertical-align:bottom",
				),
			)
		}
		return strings.Join(list, ";")
	}
	var write func(depth int) string
	write = func(depth int) string {
		if depth <= 0 {
			return words()
		}
		var b strings.Builder
		for range 1 + r.IntN(3) {
			switch name := pick("p", "div", "b", "span", "font", "h1", "h3", "h6", "ul", "ol", "blockquote", "pre", "table", "table", "small",
				"sub", "sup", "code", "br", "hr", "dl", "center", "a", "text"); name {
			case "text":
				b.WriteString(words() + " ")
			case "br", "hr":
				b.WriteString("<" + name + ">")
			case "ul", "ol":
				fmt.Fprintf(&b, `<%s style="%s"><li style="%s">%s<li>%s</%s>`, name, style(), style(), write(depth-1), words(), name)
			case "dl":
				fmt.Fprintf(&b, `<dl><dt>%s<dd>%s</dl>`, words(), write(depth-1))
			case "a":
				fmt.Fprintf(&b, `<a href="https://a.example" style="%s">%s</a>`, style(), words())
			case "font":
				fmt.Fprintf(&b, `<font size="%d" face="%s">%s</font>`, 1+r.IntN(7), pick("Arial", "Courier New", "Georgia"), write(depth-1))
			case "table":
				fmt.Fprintf(
					&b,
					`<table style="%s" width="%s" cellpadding="%d" cellspacing="%d" border="%d">`,
					style(),
					pick("100%", "600", "40%", ""),
					r.IntN(30),
					r.IntN(20),
					r.IntN(3),
				)
				for range 1 + r.IntN(3) {
					fmt.Fprintf(&b, "<tr>")
					for range 1 + r.IntN(4) {
						fmt.Fprintf(
							&b,
							`<td style="%s" width="%s" colspan="%d" height="%d">%s</td>`,
							style(),
							pick("", "", "10%", "80%", "300", "20"),
							1+r.IntN(3),
							r.IntN(2)*r.IntN(200),
							write(depth-1-r.IntN(2)),
						)
					}
					b.WriteString("</tr>")
				}
				b.WriteString("</table>")
			default:
				fmt.Fprintf(&b, `<%s style="%s">%s</%s>`, name, style(), write(depth-1), name)
			}
		}
		return b.String()
	}
	return write(1 + r.IntN(4))
}

// seeing judges, in a browser, a document in a frame: whether each of its words can be seen where it stands.
const seeing = `(frame) => {
	const doc = frame.contentDocument, view = frame.contentWindow, out = [];
	const rgb = (c) => (c.match(/[\d.]+/g) ?? []).map(Number);
	const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((s,
		v, i) => s + v * [.2126, .7152, .0722][i], 0);
	// Whether an element puts anything over a point: lines that are set tightly reach over each other without a mark there.
	const paints = (top, x, y) => {
		const { backgroundColor, backgroundImage } = view.getComputedStyle(top), range = doc.createRange();
		range.selectNodeContents(top);
		return rgb(backgroundColor)[3] !== 0 || backgroundImage !== "none" || !top.firstChild ||
			[...range.getClientRects()].some((b) => b.left <= x && x <= b.right && b.top + b.height / 5 <= y && y <= b.bottom - b.height / 5);
	};
	const walker = doc.createTreeWalker(doc.body, NodeFilter.SHOW_TEXT);
	let last = null;
	for (let n; (n = walker.nextNode());) {
		const text = n.data.trim();
		if (!text) continue;
		const say = (problem) => out.push(problem + ": " + text.slice(0, 40));
		const el = n.parentElement, style = view.getComputedStyle(el);
		const range = doc.createRange();
		// Spaces that are kept may hang over the end of a line: then its words alone count.
		const words = style.whiteSpace.startsWith("pre") ? [...n.data.matchAll(/\S+/g)] : [{ index: 0, 0: n.data }];
		const boxes = words.flatMap((w) => { range.setStart(n, w.index); range.setEnd(n, w.index + w[0].length);
			return [...range.getClientRects()]; }).filter((b) => b.width > 0 && b.height > 0);
		if (boxes.length === 0) { say("it has no place"); continue; }
		if (style.visibility !== "visible" || !el.checkVisibility({ opacityProperty: true, visibilityProperty: true,
			contentVisibilityAuto: true })) say("it is not visible");
		if (parseFloat(style.fontSize) < 6.4) say("its font has " + style.fontSize);
		let back = [255, 255, 255];
		for (let e = el; e; e = e.parentElement) { const c = rgb(view.getComputedStyle(e).backgroundColor);
			if (c.length < 4 || c[3] > 0) { back = c; break; } }
		const [a, b] = [light(rgb(style.color)), light(back)], contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
		if (contrast < 1.5) say("faint");
		for (const box of boxes) {
			if (box.left < -1 || box.top < -1) say("it lies outside at " + Math.round(box.left) + " " + Math.round(box.top));
			if (box.right > view.innerWidth + 1) say("beside");
			if (box.bottom > view.innerHeight + 1) say("below");
		}
		const box = boxes[0], x = box.left + Math.min(box.width / 2, 5), y = box.top + box.height / 2;
		if (x > 0 && y > 0 && x < view.innerWidth && y < Math.min(view.innerHeight, 1500)) {
			const top = doc.elementFromPoint(x, y);
			if (top && !top.contains(el) && !el.contains(top) && paints(top, x, y)) say("it is covered by <" + top.tagName + ">");
		}
		const cell = el.closest("td, th");
		if (last && last.cell === cell && boxes[boxes.length - 1].bottom < last.top - 3) say("it stands above what is before it");
		last = { cell, top: box.top };
	}
	if (doc.documentElement.scrollHeight > view.innerHeight + 1) out.push("below: the page of " + doc.documentElement.scrollHeight);
	return out;
}`

// gallery shows documents in frames of a page, many at once, with the script that measures the previews of the console.
type gallery struct {
	measuring []byte
	mu        sync.Mutex
	pages     []string
	// frames are the documents that the page shows, by their number, and width is that of each frame.
	frames []int
	width  int
}

func (g *gallery) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.URL.Path == "/seen.js" {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write(g.measuring)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	var i int
	if _, err := fmt.Sscanf(r.URL.Path, "/%d", &i); err == nil {
		w.Header().Set("Content-Security-Policy", "sandbox allow-same-origin; default-src 'none'; style-src 'unsafe-inline'; img-src data:")
		_, _ = w.Write([]byte(g.pages[i]))
		return
	}
	fmt.Fprint(w, `<!doctype html><title>Gallery</title><script src="/seen.js"></script><style>.preview { display: block;
		box-sizing: content-box; border: 1px solid; width: calc(100% / var(--scale, 1) - 2px); transform: scale(var(--scale, 1));
		transform-origin: 0 0; }</style><body>`)
	for _, i := range g.frames {
		fmt.Fprintf(
			w,
			`<div style="width:%dpx"><iframe class="preview" sandbox="allow-same-origin" src="/%d"></iframe></div>`,
			g.width+2, // its border
			i,
		)
	}
}

// TestEveryWordCanBeSeen lays the mails out in a browser, at the width of a phone and at that of a desk: whatever
// somebody has tried, each of their words stands where it is read, is not covered, and can be told
// from what is behind it, or the reviewer is told; and where a part of a mail lies outside of its frame the page and, on a
// desk, the flag of the mail say so.
func TestEveryWordCanBeSeen(t *testing.T) {
	t.Parallel()
	list := mailBodies(t)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 400 {
		list = append(list, vector{fmt.Sprint("made/", i), made(random)})
	}
	list = some(list)
	script, err := os.ReadFile(filepath.Join(hubtest.Root(t), "services/review-control/console/assets/seen.js"))
	if err != nil {
		t.Fatal(err)
	}
	g := &gallery{measuring: script}
	type entry struct {
		name, clean string
		v           body.View
	}
	var entries []entry
	for _, v := range list {
		clean, _ := markup.Mail().Clean(v.text)
		read := body.Read(clean, true)
		entries = append(entries, entry{v.name, clean, read})
		g.pages = append(g.pages, body.Shown(body.Document(clean, read.Text)))
	}
	server := httptest.NewServer(g)
	defer server.Close()
	p := newPage(t, server.URL)
	p.restless = true
	large := func(v body.View) bool { return v.Size.Width > body.PreviewWidth || v.Size.Height > 2400 } // as review-control has it
	whole, flagged := map[int]int{}, 0
	var missed []string
	for _, width := range []int{280, body.PreviewWidth} {
		for chunk := range slices.Chunk(slices.Sorted(maps.Keys(asMap(entries))), 60) {
			g.mu.Lock()
			g.frames, g.width = chunk, width
			g.mu.Unlock()
			p.openForeign(server.URL + "/")
			var seen []struct {
				Problems []string
				Whole    bool
			}
			p.Evaluate(`(async () => {
				while (document.readyState !== "complete") await new Promise((wait) => setTimeout(wait, 10));
				return [...document.querySelectorAll("iframe")].map((f) => { f.scrollIntoView();
					return { Problems: (`+seeing+`)(f), Whole: hubSeen.whole(f) }; });
			})()`, &seen)
			if len(seen) != len(chunk) {
				t.Fatalf("%d of %d mails were looked at", len(seen), len(chunk))
			}
			for j, i := range chunk {
				e := entries[i]
				if seen[j].Whole {
					whole[width]++
				} else if width == body.PreviewWidth && !large(e.v) && strings.HasPrefix(e.name, "made/") {
					missed = append(missed, e.name)
				} else if width == body.PreviewWidth && !large(e.v) {
					t.Errorf("%s is not whole on a desk, and has no flag: %v, %v\n%.600s", e.name, e.v.Size, seen[j].Problems, e.clean)
				}
				if width == body.PreviewWidth && large(e.v) {
					flagged++
				}
				for _, problem := range slices.Compact(seen[j].Problems) {
					outside := strings.HasPrefix(problem, "beside") || strings.HasPrefix(problem, "below")
					if outside && !seen[j].Whole || e.v.Flagged() && strings.HasPrefix(problem, "faint") {
						continue
					}
					t.Errorf("%s at %d pixels, taken for %v: %s\n%.600s", e.name, width, e.v.Size, problem, e.clean)
					break
				}
			}
		}
	}
	t.Logf(
		"of %d mails %d are whole on a phone, %d on a desk, and %d have a flag for being long or wide",
		len(entries),
		whole[280],
		whole[body.PreviewWidth],
		flagged,
	)
	// The flag is an estimate: of mails that chance has made, with fonts of 8 and of 72 pixels in tables of all kinds, it may miss some.
	if len(missed) > 8 {
		t.Errorf("not whole on a desk, and without a flag: %v", missed)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.name, "usual/") && (e.v.Flagged() || large(e.v)) {
			t.Errorf("%s is flagged: %v %v", e.name, e.v.Warnings, e.v.Size)
		}
	}
}

func asMap[T any](list []T) map[int]T {
	m := make(map[int]T, len(list))
	for i, x := range list {
		m[i] = x
	}
	return m
}

// TestShownIsSent takes mails through the whole stack: what the frame of a page shows is, byte for byte, the
// HTML that the mail server got, and the same to the eye.
func TestShownIsSent(t *testing.T) {
	t.Parallel()
	s := start(t, options{env: []string{"HUB_DRAFT_RECIPIENTS=not_b2c"}})
	ada := s.person("Ada Lovelace", "reviewer")
	list := mailBodies(t)
	list = some(slices.DeleteFunc(list, func(v vector) bool { return len(v.name)%4 != 0 && !strings.HasPrefix(v.name, "usual") }))
	id := s.queued(
		t,
		s.draft(
			t,
			draftOptions{targets: len(list), madeUp: true, each: func(i int, target map[string]any) { target["body"] = list[i].text }},
		),
	)
	p := s.signedIn(t, ada, "/drafts/"+id)
	p.hostile, p.restless = true, true
	shown := make([]string, len(list))
	for i := range list {
		var f struct{ Frame, Target string }
		p.Evaluate(fmt.Sprintf(`(async () => {
			const page = new DOMParser().parseFromString(await (await fetch("/drafts/%s/targets/%d")).text(), "text/html");
			return {
				Frame: await (await fetch(page.querySelector("article iframe").getAttribute("src"))).text(),
				Target: page.querySelector("article form [name=target]").value,
			};
		})()`, id, i), &f)
		shown[i] = f.Frame
		if status := p.post(
			attempt{path: "/drafts/" + id + "/decide", body: "choice=approved&target=" + strings.ReplaceAll(f.Target, ":", "%3A")},
		); status >= 400 {
			t.Fatalf("%s (%d): the decision answers %d", list[i].name, i, status)
		}
	}
	hubtest.Eventually(t, "all are sent", func() bool { return len(s.smtp.Mails()) == len(list) })
	sent := make([]string, len(list))
	for i, v := range list {
		mails := s.mailsTo(fmt.Sprintf("person%03d@company.example", i))
		if len(mails) != 1 || body.Shown(mails[0].HTML) != shown[i] || !strings.HasPrefix(shown[i], "<!doctype html>") {
			t.Errorf("%s: the frame shows\n%q\nand %d mails have\n%q", v.name, shown[i], len(mails), mails)
			continue
		}
		sent[i] = body.Shown(mails[0].HTML)
	}
	// And in a window: the frame as it is served, and the HTML that was sent, with pictures elsewhere described.
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var i int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &i)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:")
		_, _ = w.Write([]byte(sent[i]))
	}))
	defer other.Close()
	look := func(address string) (text string, picture []byte) {
		p.openForeign(address)
		p.Evaluate("document.body.innerText", &text)
		return text, do(p, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{}).Data
	}
	compared := 0
	for i, v := range list {
		if i%8 != 0 && !strings.HasPrefix(v.name, "usual") {
			continue
		}
		text, picture := look(fmt.Sprintf("%s/drafts/%s/targets/%d/preview", s.url, id, i))
		again, other := look(fmt.Sprintf("%s/%d", other.URL, i))
		if compared++; text != again || !bytes.Equal(picture, other) {
			t.Errorf("%s looks otherwise: %q and %q", v.name, text, again)
		}
	}
	t.Logf("%d mails, %d of them compared to the eye", len(list), compared)
}
