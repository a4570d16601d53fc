package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"

	"hub.internal/pkg/hubtest"
)

// speaks has the browser ask for pages in a language.
func (p *page) speaks(language string) {
	p.t.Helper()
	do(p, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": language}})
}

// particular are the parts of an address that name one of many things.
var particular = regexp.MustCompile(`/(?:\d+|[a-z]+_[0-9A-Za-z]{8,}|[0-9a-f-]{16,}|\d+-[0-9a-f-]{30,})(/|$)`)

// left are the words of a page that are in no language but English: those that are neither data nor code.
const left = `(() => {
	const words = new Set(), data = "[lang=en], code, kbd, pre, bdi, time, iframe, textarea, script, style, svg, noscript, .me";
	const say = (text) => { for (const w of text.match(/[A-Za-z_]*[a-z]{3,}[a-z_]*(?: [A-Za-z]{2,})*/g) ?? []) words.add(w); };
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (texts.nextNode()) if (!texts.currentNode.parentElement.closest(data)) say(texts.currentNode.data);
	document.querySelectorAll("[aria-label], [placeholder], [title]").forEach((el) => {
		if (el.closest(data)) return;
		for (const name of ["aria-label", "placeholder"]) say(el.getAttribute(name) ?? "");
	});
	return [...words];
})()`

// names are what is called so in Korean as well: products, codes of roles, scopes and tools, columns of a file, and what the test has
// made up.
var names = regexp.MustCompile(`^(?:Hub|English|Ctrl|Esc|NicePay|ServiceJWT|MiB|Linux|Chrome|reviewer|admin|explore|sql|query|author|` +
	`control|read|write|email|reason|name|create_menu_(?:group|item)|toName|[Aa]da|[Ll]ovelace|Ada Lovelace|[Pp]erson|company|example|com|` +
	`test|Partners of|sells what we like|partner|Enter|Space|Shift|apikey|list|pay|refund|shop|nicepay|sandbox|production)$`)

// TestKorean walks through the console by its links, in Korean and in both themes: each page is in that language, no rule of axe is
// broken, and what a person has chosen follows them to another browser.
func TestKorean(t *testing.T) {
	t.Parallel()
	installAxe(t)
	s := start(t, options{env: []string{"HUB_DRAFT_RECIPIENTS=not_b2c"}})
	ada := s.person("Ada Lovelace", "reviewer", "admin")
	s.queued(t, s.draft(t, draftOptions{name: "봄 신상품 안내", targets: 3, madeUp: true, subject: "안내 {{toName}}", body: "<p>{{toName}}님</p>",
		snapshot: []byte(`{"brand_id":1}`)}))
	s.call("search_brands", `{"limit":100000}`)
	p := newPage(t, s.url)
	p.speaks("ko-KR,ko;q=0.9,en;q=0.8")
	judge := func(at string) {
		t.Helper()
		var language string
		p.Evaluate("document.documentElement.lang", &language)
		var words []string
		p.Evaluate(left, &words)
		words = slices.DeleteFunc(words, names.MatchString)
		if language != "ko" || len(words) > 0 {
			t.Errorf("%s is in %s, with %q", at, language, words)
		}
		p.Look("light", 1280)
		p.report(at+"-ko-light-1280", p.violations(nil, nil))
		if os.Getenv("HUB_SCREENS") != "" {
			name := "ko" + strings.NewReplacer("/", "-", "*", "N").Replace(at) + ".png"
			p.Screenshot(filepath.Join(hubtest.Root(t), ".hub", "e2e", "screens", name))
		}
		p.Look("dark", 390)
		p.report(at+"-ko-dark-390", p.violations(nil, ofColours))
		p.fits(at + "-ko")
		p.canBeTouched(at)
		p.Look("light", 1280)
	}
	for _, path := range []string{"/", "/login", "/unsubscribe/" + strings.Repeat("A", 22)} {
		p.Open(path)
		judge(path)
	}
	p.Open("/login")
	p.Field("이메일").Fill(ada.Email)
	p.Field("비밀번호").Fill(ada.Password)
	p.Button("로그인").Click()
	seen, wait := map[string]bool{}, []string{"/drafts", "/admin", "/account/sessions", "/search?q=ada", "/nothing"}
	for len(wait) > 0 && len(seen) < 80 {
		path := wait[0]
		wait = wait[1:]
		bare, _, _ := strings.Cut(path, "?")
		kind := particular.ReplaceAllString(particular.ReplaceAllString(bare, "/*$1"), "/*$1")
		if seen[kind] || slices.Contains([]string{"/logout", "/docs", "/admin/audit/export"}, bare) || strings.HasPrefix(bare, "/docs/") ||
			strings.HasPrefix(bare, "/assets/") || strings.HasSuffix(bare, "/preview") {
			continue
		}
		seen[kind] = true
		p.Open(path)
		judge(kind)
		var links []string
		p.Evaluate(`[...document.querySelectorAll("a[href^='/']:not([download])")].map((a) => a.getAttribute("href").split("#")[0])`, &links)
		wait = append(wait, links...)
	}
	if t.Logf("%d kinds of pages", len(seen)); len(seen) < 25 {
		t.Errorf("only %d kinds of pages were found: %v", len(seen), seen)
	}

	p.Open("/account/sessions")
	p.Button("English").Click()
	p.Sees("Your account")
	other := newPage(t, s.url)
	other.speaks("ko")
	other.Open("/login")
	other.Sees("로그인")
	other.Field("이메일").Fill(ada.Email)
	other.Field("비밀번호").Fill(ada.Password)
	other.Button("로그인").Click()
	other.Open("/account/sessions")
	other.Sees("Your account")
}
