package apps_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/services/auth/apps"
)

var at = time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)

func settings(change ...func(*apps.Settings)) apps.Settings {
	s := apps.Settings{Name: "The shop"}
	for _, f := range change {
		f(&s)
	}
	return s
}

func TestURLs(t *testing.T) {
	t.Parallel()
	long := "https://shop.example/" + strings.Repeat("a", 500)
	for text, want := range map[string]struct{ redirect, origin bool }{
		"https://shop.example/":               {true, false},
		"https://shop.example":                {false, true},
		"https://shop.example/back":           {true, false},
		"https://shop.example/back?x=1&y=%20": {true, false},
		"https://shop.example/a%2Fb":          {true, false},
		"https://shop.example:8443":           {false, true},
		"https://shop.example:8443/back":      {true, false},
		"https://shop.example:443":            {false, false},
		"https://xn--9d0b.example/":           {true, false},
		"http://localhost:3000/back":          {true, false},
		"http://localhost:3000":               {false, true},
		"http://127.0.0.1:3000":               {false, true},
		"http://localhost.evil.example/back":  {},
		"http://localhost@evil.example/back":  {},
		"http://shop.example/back":            {},
		"https://shop.example/back#here":      {},
		"https://shop.example/back#":          {},
		"https://user@shop.example/":          {},
		"https://user:pw@shop.example/":       {},
		"https://shop.example?":               {},
		"https://shop.example/../admin":       {},
		"https://shop.example/a/./b":          {},
		"https://shop.example/%2e%2e/admin":   {},
		"https://shop.example/..":             {},
		"https://SHOP.example/back":           {},
		"HTTPS://shop.example/back":           {},
		"https://shop.example./":              {},
		"https://shop..example/":              {},
		"https://shop.example:/":              {},
		"https://shop.example:0443/":          {},
		"https://shop/":                       {},
		"https://192.0.2.1/":                  {},
		"https://[::1]/":                      {},
		"https://*.example/":                  {},
		`https://shop.example\@evil.example/`: {},
		"https://shop.example/ü":              {},
		"https://shöp.example/":               {},
		"https://shop.example/a b":            {},
		" https://shop.example/":              {},
		"https://shop.example/\n":             {},
		"https://shop.example/\x00":           {},
		"https:shop.example":                  {},
		"//shop.example/":                     {},
		"javascript:alert(1)":                 {},
		"data:text/html,x":                    {},
		"myapp://back":                        {},
		"":                                    {},
		"https://":                            {},
		"https:///back":                       {},
		"https://shop.example/%zz":            {},
		long:                                  {},
		"https://shop.example/<script>":       {},
	} {
		_, err := apps.NewApp("shop", settings(func(s *apps.Settings) { s.RedirectURLs = []string{text} }), "ada", at)
		if (err == nil) != want.redirect {
			t.Errorf("redirect to %q: %v", text, err)
		}
		if _, err := apps.NewApp(
			"shop",
			settings(func(s *apps.Settings) { s.Origins = []string{text} }),
			"ada",
			at,
		); (err == nil) != want.origin {
			t.Errorf("origin %q: %v", text, err)
		}
		for _, v := range schema.ViolationsOf(err) {
			if v.Path != "/redirect_urls" || v.Rule != "url" || len(v.Message) > 300 {
				t.Errorf("%q: %+v", text, v)
			}
		}
	}
}

func TestSettingsAreJudgedAsAWhole(t *testing.T) {
	t.Parallel()
	many := make([]string, apps.MaxURLs+1)
	for i := range many {
		many[i] = fmt.Sprintf("https://shop%d.example", i)
	}
	for name, c := range map[string]struct {
		code   string
		change func(*apps.Settings)
		paths  string
	}{
		"good":      {"shop-1.kr_x", func(*apps.Settings) {}, ""},
		"longest":   {strings.Repeat("a", 40), func(s *apps.Settings) { s.Name = strings.Repeat("가", 100); s.Origins = many[:20] }, ""},
		"no code":   {"", func(*apps.Settings) {}, "/service_code"},
		"long code": {strings.Repeat("a", 41), func(*apps.Settings) {}, "/service_code"},
		"capitals":  {"Shop", func(*apps.Settings) {}, "/service_code"},
		"a path":    {"a/b", func(*apps.Settings) {}, "/service_code"},
		"dots":      {"..", func(*apps.Settings) {}, "/service_code"},
		"the form":  {"_new", func(*apps.Settings) {}, "/service_code"},
		"everything": {"-", func(s *apps.Settings) {
			s.Name = " "
			s.Scopes = []string{"sql"}
			s.LinkMode = "never"
			s.Limits.UserBurst = 1
		}, "/link_mode /name /scopes /service-burst /service-per-minute /service_code /user-per-minute"},
		"too many":    {"shop", func(s *apps.Settings) { s.Origins = many }, "/origins"},
		"a bad name":  {"shop", func(s *apps.Settings) { s.Name = "a\nb" }, "/name"},
		"tool scopes": {"shop", func(s *apps.Settings) { s.Scopes = []string{"pay:read", "admin:write"} }, "/scopes"},
	} {
		a, err := apps.NewApp(c.code, settings(c.change), "ada", at)
		var paths []string
		for _, v := range schema.ViolationsOf(err) {
			paths = append(paths, v.Path)
		}
		slices.Sort(paths)
		if got := strings.Join(paths, " "); got != c.paths || (err == nil) != (c.paths == "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err == nil &&
			(a.Status != apps.Active || a.LinkMode != apps.Consent || a.Limits != apps.DefaultLimits() || a.Version != 1 || a.Scopes == nil) {
			t.Errorf("%s: %+v", name, a)
		}
	}
	a, err := apps.NewApp("shop", settings(func(s *apps.Settings) {
		s.Scopes = []string{"pay:write", "pay:read", "pay:write"}
		s.Origins = []string{"https://b.example", "https://a.example", "https://b.example"}
	}), "ada", at)
	if err != nil || !slices.Equal(a.Scopes, []string{"pay:read", "pay:write"}) ||
		!slices.Equal(a.Origins, []string{"https://b.example", "https://a.example"}) {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestStates is the table of what a state may become.
func TestStates(t *testing.T) {
	t.Parallel()
	allowed := map[string]bool{"ACTIVE SUSPENDED": true, "ACTIVE REVOKED": true, "SUSPENDED ACTIVE": true, "SUSPENDED REVOKED": true}
	for _, from := range apps.Statuses() {
		for _, to := range apps.Statuses() {
			a := apps.App{Code: "shop", Status: apps.Status(from), Reason: "before", Version: 7}
			next, err := a.Become(apps.Status(to), "because", at)
			if (err == nil) != allowed[from+" "+to] {
				t.Errorf("%s → %s: %v", from, to, err)
			}
			if err != nil {
				details := fault.From(err).Details
				if !fault.Is(err, fault.Conflict) || fmt.Sprint(details) != "map[from:"+from+" to:"+to+"]" {
					t.Errorf("%s → %s: %v %v", from, to, err, details)
				}
			} else if next.Version != 8 || next.Status != apps.Status(to) || (next.Reason == "because") != (to != "ACTIVE") || next.UpdatedAt != at {
				t.Errorf("%s → %s: %+v", from, to, next)
			}
		}
	}
	if _, err := (apps.App{Status: apps.Active}).Become(apps.Suspended, " ", at); !fault.Is(err, fault.Validation) {
		t.Errorf("no reason: %v", err)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^hss_[A-Za-z0-9_-]{43}[0-9A-Za-z]{6}$`)
	seen := map[string]bool{}
	for range 1000 {
		token := apps.NewToken()
		if text := token.Reveal(); !form.MatchString(text) || seen[text] {
			t.Fatalf("token %q", text)
		}
		seen[token.Reveal()] = true
		for _, shown := range []string{fmt.Sprint(token), fmt.Sprintf("%+v %#v", token, token), token.LogValue().String()} {
			if strings.Contains(shown, token.Reveal()[4:20]) {
				t.Fatalf("shows itself: %s", shown)
			}
		}
	}
}

// TestAMessageRepeatsWholeCharacters: addresses were cut in the middle of one.
func TestAMessageRepeatsWholeCharacters(t *testing.T) {
	address := "https://shop.example/" + strings.Repeat("a", 38) + "한글로 된 주소"
	_, err := apps.NewApp("shop", settings(func(s *apps.Settings) { s.RedirectURLs = []string{address} }), "ada", at)
	for _, v := range schema.ViolationsOf(err) {
		if strings.Contains(v.Message, "\ufffd") || !strings.Contains(v.Message, "…") {
			t.Error(v.Message)
		}
	}
	if err == nil {
		t.Error("the address is fine")
	}
}
