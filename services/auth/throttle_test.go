package auth_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/services/auth"
)

// try signs in from somewhere and returns the code of the answer, empty for one that worked, and what the browser
// is known by from then on.
func (h *hall) try(t *testing.T, email, pass string, b auth.Browser) (fault.Code, string) {
	t.Helper()
	in, err := h.SignIn(h.ctx, email, pass, b)
	if err == nil {
		return "", in.Known.Reveal()
	}
	f := fault.From(err)
	if f.Code == fault.RateLimit &&
		(f.RetryAfter <= 0 || f.RetryAfter > auth.PlaceThrottle.Every || !strings.HasPrefix(f.Message, "Too many failed tries. Wait for ")) {
		t.Errorf("retry after %v: %s", f.RetryAfter, f.Message)
	}
	return f.Code, b.Known
}

func from(address string) auth.Browser { return auth.Browser{Address: address} }

func TestThrottle(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.add(t, ada)
	for range auth.PlaceThrottle.Burst + 2 { // what works is never counted
		if code, _ := h.try(t, ada, password, from("192.0.2.1")); code != "" {
			t.Fatal(code)
		}
	}
	for _, account := range []string{ada, "nobody@example.com"} {
		for i := range auth.PlaceThrottle.Burst {
			if code, _ := h.try(t, account, "wrong", from("192.0.2.2")); code != fault.AuthInvalid {
				t.Fatalf("%s, try %d: %s", account, i, code)
			}
		}
		if code, _ := h.try(t, "  "+strings.ToUpper(account), "wrong", from("192.0.2.2")); code != fault.RateLimit {
			t.Errorf("%s, beyond the burst: %s", account, code)
		}
	}
	if code, _ := h.try(t, ada, password, from("192.0.2.2")); code != fault.RateLimit {
		t.Errorf("the right password, throttled: %s", code)
	}
	h.clock.Advance(auth.PlaceThrottle.Every)
	if code, _ := h.try(t, ada, password, from("192.0.2.2")); code != "" {
		t.Errorf("a while later: %s", code)
	}
	if code, _ := h.try(t, ada, "wrong", from("192.0.2.2")); code != fault.AuthInvalid {
		t.Errorf("what works has cost something: %s", code)
	}
	if _, err := h.SetPassword(h.ctx, strings.ToUpper(ada), "another good password"); err != nil {
		t.Fatal(err)
	}
	if code, _ := h.try(t, ada, "another good password", from("192.0.2.2")); code != "" {
		t.Errorf("with the password that an administrator has just given: %s", code)
	}
}

// TestAttackersKeepNobodyOut has ten networks try a person's account for hours, as often as they may and more.
func TestAttackersKeepNobodyOut(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.add(t, ada)
	_, known := h.try(t, ada, password, from("198.51.100.1"))
	const attackers, hours = 10, 1
	judged := 0
	for step := range hours * 4 {
		for s := range attackers {
			for {
				code, _ := h.try(t, ada, "wrong wrong wrong", from(fmt.Sprintf("192.0.%d.2", s)))
				if code != fault.AuthInvalid {
					break
				}
				judged++
			}
		}
		code, next := h.try(t, ada, password, auth.Browser{Address: "192.0.1.2", Known: known}) // even from an attacker's network
		if code != "" || next == known {
			t.Fatalf("step %d, her own browser: %s", step, code)
		}
		known = next
		if code, _ := h.try(t, ada, password, from(fmt.Sprintf("203.0.113.%d", step))); code != "" {
			t.Fatalf("step %d, another browser of hers, elsewhere: %s", step, code)
		}
		h.clock.Advance(auth.PlaceThrottle.Every)
	}
	// For as long as they like: what they may all try does not use up what comes back meanwhile.
	if attackers*auth.PlaceThrottle.Burst >= auth.AccountThrottle.Burst ||
		attackers*auth.AccountThrottle.Every >= auth.PlaceThrottle.Every {
		t.Errorf("ten attackers use up an account: %v, %v", auth.PlaceThrottle, auth.AccountThrottle)
	}
	if most := attackers * (auth.PlaceThrottle.Burst + hours*4); judged > most || judged < most/2 {
		t.Errorf("%d guesses of %d attackers in %d hours", judged, attackers, hours)
	}
}

// TestGuessesOfAnAccountAreBounded has a crowd try one account: together they have so many tries a day, and her own
// browser is not among them.
func TestGuessesOfAnAccountAreBounded(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.add(t, ada)
	_, known := h.try(t, ada, password, from("198.51.100.1"))
	var judged, refused atomic.Int64
	var crowd sync.WaitGroup
	for part := range 2 {
		crowd.Go(func() {
			for i := range 10 * auth.PlaceThrottle.Burst {
				switch code, _ := h.try(t, ada, "wrong wrong wrong", from(fmt.Sprintf("192.0.%d.2", i%10*2+part))); code {
				case fault.AuthInvalid:
					judged.Add(1)
				case fault.RateLimit:
					refused.Add(1)
				default:
					t.Errorf("try %d: %s", i, code)
				}
			}
		})
	}
	crowd.Wait()
	if judged.Load() != int64(auth.AccountThrottle.Burst) || refused.Load() == 0 {
		t.Errorf("%d judged, %d refused", judged.Load(), refused.Load())
	}
	for i := range auth.PlaceThrottle.Burst {
		if code, _ := h.try(t, ada, "mistyped", auth.Browser{Address: "192.0.3.2", Known: known}); code != fault.AuthInvalid {
			t.Fatalf("her own browser, mistyped %d times: %s", i+1, code)
		}
	}
	if code, _ := h.try(t, ada, "mistyped", auth.Browser{Address: "192.0.3.2", Known: known}); code != fault.RateLimit {
		t.Errorf("her own browser, beyond its allowance: %s", code)
	}
	h.clock.Advance(auth.PlaceThrottle.Every)
	if code, _ := h.try(t, ada, password, auth.Browser{Address: "192.0.3.2", Known: known}); code != "" {
		t.Errorf("her own browser, a while later: %s", code)
	}
	if day := auth.AccountThrottle.Burst + int(24*time.Hour/auth.AccountThrottle.Every); day > 1600 {
		t.Errorf("%d guesses of an account in a day", day)
	}
}

// TestOwnersComeInThroughTheCrowd uses up what an account has for all networks together: its owner comes in all the same,
// with a new browser on a network of their own, and each network of the crowd has one try a day more.
func TestOwnersComeInThroughTheCrowd(t *testing.T) {
	t.Parallel()
	for name, crowd := range map[string]string{"IPv4": "192.0.%d.1", "a home line of IPv6": "2001:db8:1:%x::1", "many /48": "2001:db8:%x::1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHall(t)
			h.add(t, ada)
			for _, email := range []string{ada, "nobody@example.com"} {
				judged := 0
				for i := range 20 * auth.PlaceThrottle.Burst {
					if code, _ := h.try(t, email, "wrong", from(fmt.Sprintf(crowd, i%20))); code == fault.AuthInvalid {
						judged++
					}
				}
				if most := auth.AccountThrottle.Burst; judged > most ||
					name == "a home line of IPv6" && judged > 2*auth.PlaceThrottle.Burst {
					t.Errorf("%d tries of a crowd were judged", judged)
				}
			}
			for range 2 { // what works costs nothing
				if code, _ := h.try(t, ada, password, from("198.51.100.7")); code != "" {
					t.Fatalf("her own network, a new browser: %s", code)
				}
			}
			if name != "IPv4" {
				return
			}
			for _, email := range []string{ada, "nobody@example.com"} { // told apart by nothing
				for _, want := range []fault.Code{fault.AuthInvalid, fault.RateLimit} {
					if code, _ := h.try(t, email, "wrong", from("198.51.100.7")); code != want {
						t.Errorf("%s from a network where nothing had failed: %s, want %s", email, code, want)
					}
				}
			}
			if code, _ := h.try(t, ada, password, from("198.51.100.7")); code != fault.RateLimit {
				t.Errorf("after a failure: %s", code)
			}
			h.clock.Advance(auth.FirstThrottle.Every)
			if code, _ := h.try(t, ada, password, from("198.51.100.7")); code != "" {
				t.Errorf("a day later: %s", code)
			}
		})
	}
}

// TestWideNetworks: the parts of a network have together what it has.
func TestWideNetworks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from string
		most int
	}{
		"a /24 of IPv4": {"192.0.2.%d", 4 * auth.NetworkThrottle.Burst}, "a /56": {"2001:db8:0:%x::1", 4 * auth.NetworkThrottle.Burst},
		"a /48": {"2001:db8:0:%x00::1", 16 * auth.NetworkThrottle.Burst},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHall(t)
			codes := map[fault.Code]int{}
			for i := range c.most + 20 {
				code, _ := h.try(t, fmt.Sprint("nobody", i, "@example.com"), "wrong", from(fmt.Sprintf(c.from, i%250)))
				codes[code]++
			}
			if codes[fault.AuthInvalid] != c.most || codes[fault.RateLimit] != 20 {
				t.Errorf("%v, want %d judged", codes, c.most)
			}
		})
	}
}

// asked is a store that counts what it is asked to take.
type asked struct {
	auth.UserStore
	takes atomic.Int64
}

func (a *asked) Take(ctx context.Context, now time.Time, buckets []auth.Bucket) (time.Duration, string, error) {
	a.takes.Add(1)
	return a.UserStore.Take(ctx, now, buckets)
}

// shelf is a log that remembers.
type shelf struct {
	mu   sync.Mutex
	rows []audit.Entry
}

func (s *shelf) Queue(e audit.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = append(s.rows, e)
}

// TestThousandsOfTries: a network that goes on trying pays for each, whatever becomes of it, is then refused without
// a question to the store, and leaves few rows behind.
func TestThousandsOfTries(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.add(t, ada)
	store, log := &asked{UserStore: h.store}, &shelf{}
	tally := audit.NewTally(log, "session.refused")
	people, err := auth.NewPeople(
		auth.PeopleConfig{Store: store, Refused: tally, Now: h.clock.Now, Logger: slog.New(slog.DiscardHandler)}.Cheap(),
	)
	if err != nil {
		t.Fatal(err)
	}
	h.People = people
	codes := map[fault.Code]int{}
	const tries = 5000
	for i := range tries {
		code, _ := h.try(t, ada, "wrong", from(fmt.Sprintf("2001:db8::%x", i))) // one household
		codes[code]++
	}
	if codes[fault.AuthInvalid] != auth.PlaceThrottle.Burst || codes[fault.RateLimit] != tries-auth.PlaceThrottle.Burst {
		t.Errorf("%v", codes)
	}
	if n := store.takes.Load(); n > int64(2*auth.NetworkThrottle.Burst+1) {
		t.Errorf("the store was asked %d times", n)
	}
	// What the account refused was paid for all the same.
	if code, _ := h.try(t, "bob@example.com", "wrong", from("2001:db8::ffff:1")); code != fault.RateLimit {
		t.Errorf("another account from there: %s", code)
	}
	if code, _ := h.try(t, "bob@example.com", "wrong", from("2001:db8:0:1::1")); code != fault.AuthInvalid {
		t.Errorf("another household: %s", code)
	}
	h.clock.Advance(auth.NetworkThrottle.Every)
	if code, _ := h.try(t, "bob@example.com", "wrong", from("2001:db8::ffff:1")); code != fault.AuthInvalid {
		t.Errorf("later: %s", code)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := tally.Run(ended); err != nil {
		t.Fatal(err)
	}
	if len(log.rows) != 1 || log.rows[0].Count != tries+2-20 || log.rows[0].Tool != "session.refused" ||
		log.rows[0].Caller.ExternalUserID != "" {
		t.Errorf("%+v", log.rows)
	}
	if n := h.query(t, `SELECT count(*)::text FROM audit.calls WHERE tool = 'session.start'`); n != "21" { // bob's other household, too
		t.Errorf("%s rows", n)
	}
	if n := h.query(t, `SELECT count(*)::text FROM auth.throttles`); len(n) != 2 || n > "13" {
		t.Errorf("%s buckets are kept", n)
	}
}

func TestKnownBrowser(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.add(t, ada)
	h.add(t, "bob@example.com")
	exhaust := func() {
		t.Helper()
		for range auth.PlaceThrottle.Burst {
			_, _ = h.try(t, ada, "wrong", from("192.0.2.1"))
		}
	}
	// knows tells whether the browser has an allowance of its own, from a network that has used up its own for ada.
	knows := func(email, known string) bool {
		t.Helper()
		exhaust()
		code, _ := h.try(t, email, "wrong", auth.Browser{Address: "192.0.2.1", Known: known})
		return code == fault.AuthInvalid
	}
	_, known := h.try(t, ada, password, from("198.51.100.1"))
	if len(known) != 43 || !knows(ada, known) || !knows(" "+strings.ToUpper(ada), known) {
		t.Error("the browser of a log-in is not known")
	}
	_, bobs := h.try(t, "bob@example.com", password, from("198.51.100.1"))
	for name, other := range map[string]string{"none": "", "nonsense": "x", "too much": strings.Repeat("x", 10_000), "no text": "\xff\x00",
		"a guess": strings.Repeat("A", 43), "somebody else's": bobs} {
		if knows(ada, other) {
			t.Errorf("%s is known", name)
		}
	}
	dump := h.query(
		t,
		`SELECT string_agg(b::text, ' ') || (SELECT string_agg(c::text, '') FROM audit.calls c) || (SELECT string_agg(t::text, '') `+
			`FROM auth.throttles t) FROM auth.browsers b`,
	)
	if strings.Contains(dump, known) || strings.Contains(h.log.String(), known) {
		t.Error("the store or the log holds what a browser is known by")
	}
	_, next := h.try(t, ada, password, auth.Browser{Address: "198.51.100.1", Known: known})
	if next == known || knows(ada, known) || !knows(ada, next) {
		t.Error("no rotation")
	}
	// Somebody else signs in with the same browser: hers is not taken from her.
	if _, mixed := h.try(
		t,
		"bob@example.com",
		password,
		auth.Browser{Address: "198.51.100.1", Known: next},
	); !knows(ada, next) ||
		knows(ada, mixed) {
		t.Error("another user's log-in has changed whose browser it is")
	}
	h.clock.Advance(180*24*time.Hour - time.Millisecond)
	if !knows(ada, next) {
		t.Error("forgotten before its time")
	}
	h.clock.Advance(time.Millisecond)
	if knows(ada, next) {
		t.Error("known after 180 days")
	}
	var first string
	for i := range auth.KnownBrowsers + 1 {
		h.clock.Advance(time.Second)
		_, next = h.try(t, ada, password, from("198.51.100.1"))
		if i == 0 {
			first = next
		}
	}
	if knows(ada, first) || !knows(ada, next) {
		t.Error("not the latest ten are known")
	}
	if n := h.query(
		t,
		`SELECT count(*)::text FROM auth.browsers b JOIN auth.users u ON u.id = b.user_id WHERE u.email = $1`,
		ada,
	); n != fmt.Sprint(
		auth.KnownBrowsers,
	) {
		t.Errorf("%s browsers are known", n)
	}
	if _, err := h.SetPassword(h.ctx, ada, "another good password"); err != nil {
		t.Fatal(err)
	}
	if knows(ada, next) ||
		h.query(t, `SELECT count(*)::text FROM auth.browsers b JOIN auth.users u ON u.id = b.user_id WHERE u.email = $1`, ada) != "0" {
		t.Error("known after another password")
	}
	if err := h.store.Reap(h.ctx, h.clock.Now(), h.clock.Now().Add(365*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if n := h.query(t, `SELECT (SELECT count(*) FROM auth.browsers) + (SELECT count(*) FROM auth.throttles) || ''`); n != "0" {
		t.Errorf("%s browsers and buckets are kept for ever", n)
	}
}

// TestKnownBrowserCookie follows the cookie through the pages.
func TestKnownBrowserCookie(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	u := h.add(t, ada)
	good := url.Values{"email": {ada}, "password": {password}}
	res, _ := h.visit(t, visitor, "POST", "/login", good)
	c := cookie(res, "__Host-hub-browser")
	if c == nil || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" ||
		c.MaxAge != 180*24*3600 ||
		len(c.Value) != 43 {
		t.Fatalf("%v", res.Header["Set-Cookie"])
	}
	for range auth.PlaceThrottle.Burst + 1 {
		res, _ = h.visit(t, visitor, "POST", "/login", url.Values{"email": {ada}, "password": {"x"}})
	}
	if res.StatusCode != http.StatusTooManyRequests || cookie(res, c.Name) != nil {
		t.Errorf("an attacker: %d", res.StatusCode)
	}
	res, _ = h.visit(t, visitor, "POST", "/login", good, "Cookie", c.Name+"="+c.Value)
	next := cookie(res, c.Name)
	if res.StatusCode != http.StatusSeeOther || next == nil || next.Value == c.Value {
		t.Fatalf("her browser: %d", res.StatusCode)
	}
	opened, err := h.Resolve(h.ctx, cookie(res, "__Host-hub").Value)
	if err != nil {
		t.Fatal(err)
	}
	// The session, not the address, is what another password is asked for in: others at the same address do not hinder it.
	user := caller.Caller{Kind: caller.User, HubUser: u.ID, Email: u.Email, CredentialID: opened.Session.ID}
	res, _ = h.visit(
		t,
		user,
		"POST",
		"/account/sessions/password",
		url.Values{"old": {password}, "new": {"another good password"}},
		"Cookie",
		c.Name+"="+next.Value,
	)
	changed := cookie(res, c.Name)
	if res.StatusCode != http.StatusSeeOther || changed == nil || changed.Value == next.Value {
		t.Fatalf("another password: %d %v", res.StatusCode, res.Header["Set-Cookie"])
	}
	if n := h.query(t, `SELECT count(*)::text FROM auth.browsers`); n != "1" {
		t.Errorf("%s browsers are known after another password", n)
	}
}

// TestPeopleComeBeforeTheCrowd fills the line for hashing: nobody finds a place in it who goes on trying, and who is known does.
func TestPeopleComeBeforeTheCrowd(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	u := h.add(t, ada)
	_, known := h.try(t, ada, password, from("198.51.100.1"))
	const crowd, places = 10, 4
	free := h.Occupy(t, time.Minute)
	var all sync.WaitGroup
	var busy, judged atomic.Int64
	try := func(n int) {
		all.Go(func() {
			switch _, err := h.SignIn(h.ctx, ada, "wrong wrong wrong", from(fmt.Sprintf("10.%d.0.1", n))); {
			case fault.Is(err, fault.AuthInvalid):
				judged.Add(1)
			case fault.Is(err, fault.RateLimit) && strings.Contains(err.Error(), "Too many people"):
				busy.Add(1)
			default:
				t.Errorf("network %d: %v", n, err)
			}
		})
	}
	for n := range crowd {
		try(n)
	}
	hubtest.Eventually(t, "the line is full", func() bool { return busy.Load() == crowd-places })
	for n := range crowd {
		try(n)
	}
	hubtest.Eventually(t, "nobody comes in who goes on trying", func() bool { return busy.Load() == 2*crowd-places })
	for name, come := range map[string]func() error{
		"a known browser": func() error {
			_, err := h.SignIn(h.ctx, ada, password, auth.Browser{Address: "10.1.0.1", Known: known})
			return err
		},
		"another password": func() error {
			_, err := h.ChangePassword(h.ctx, "bob@example.com", "x", "another good password", auth.Browser{Address: "10.1.0.1", Session: "ses_1"})
			if fault.Is(err, fault.AuthInvalid) { // there is no such user; it was judged
				err = nil
			}
			return err
		},
	} {
		all.Go(func() {
			if err := come(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	free()
	all.Wait()
	if n := judged.Load(); n != places {
		t.Errorf("%d of the crowd were judged", n)
	}
	h.signIn(t, u.Email)
}

// TestBusyPasswords: who waits for long is told so, and has failed nothing.
func TestBusyPasswords(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.add(t, ada)
	free := h.Occupy(t, 50*time.Millisecond)
	for range 2 * auth.PlaceThrottle.Burst {
		_, err := h.SignIn(h.ctx, ada, password, from("192.0.2.1"))
		if f := fault.From(err); f.Code != fault.RateLimit || f.RetryAfter <= 0 || !strings.Contains(f.Message, "Too many people") {
			t.Fatal(err)
		}
	}
	free()
	h.signIn(t, ada)
}
