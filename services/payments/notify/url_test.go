package notify_test

import (
	"strings"
	"testing"
	"time"

	"hub.internal/services/payments/notify"
)

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://svc.example/hook":                        "",
		"https://svc.example":                             "",
		"https://svc.example:8443/a?b=c":                  "",
		"https://svc.example:443/":                        "",
		"https://93.184.216.34/":                          "",
		"https://[2606:4700::1]:8443/":                    "",
		"https://xn--bcher-kva.example/":                  "",
		"https://1.example/":                              "",
		"http://svc.example/":                             "https://",
		"HTTP://svc.example/":                             "https://",
		"ftp://svc.example/":                              "https://",
		"javascript:alert(1)":                             "host",
		"https:svc.example":                               "host",
		"https:///path":                                   "host",
		"//svc.example/":                                  "https://",
		"/hook":                                           "host",
		"":                                                "host",
		"https://user@svc.example/":                       "user",
		"https://user:pw@svc.example/":                    "user",
		"https://@svc.example/":                           "user",
		"https://svc.example/#part":                       "fragment",
		"https://svc.example/#":                           "fragment",
		"https://svc.example:/":                           "port",
		"https://svc.example:0/":                          "port",
		"https://svc.example:80/":                         "port",
		"https://svc.example:22/":                         "port",
		"https://svc.example:0443/":                       "port",
		"https://svc.example:65536/":                      "port",
		"https://0x7f000001/":                             "address",
		"https://2130706433/":                             "address",
		"https://127.1/":                                  "address",
		"https://127.0.0.1./":                             "address",
		"https://a.0x7f/":                                 "address",
		"https://[::ffff:127.0.0.1]/":                     "address",
		"https://[fe80::1%25eth0]/":                       "address",
		"https://svc.example/\r\nX: 1":                    "characters",
		"https://svc.example/ a":                          "characters",
		"https://bücher.example/":                         "characters",
		"https://svc.example\\@evil.example/":             "characters",
		"https://svc.example/" + strings.Repeat("x", 480): "",
		"https://svc.example/" + strings.Repeat("x", 481): "longer",
	} {
		err := notify.CheckURL(url, nil, false)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", url, err)
		}
	}
	if err := notify.CheckURL("http://127.0.0.1:9999/echo", nil, true); err != nil {
		t.Errorf("http where it is allowed: %v", err)
	}
	if err := notify.CheckURL("http://svc.example:80/echo", nil, true); err != nil {
		t.Errorf("http where it is allowed: %v", err)
	}
}

func TestAnOriginIsComparedByteForByte(t *testing.T) {
	t.Parallel()
	origins := []string{"https://svc.example", "https://svc.example:8443"}
	for url, want := range map[string]bool{
		"https://svc.example":                      true,
		"https://svc.example/hook":                 true,
		"https://svc.example?x=/":                  true,
		"https://svc.example:8443/hook":            true,
		"https://svc.example:443/hook":             false,
		"https://SVC.example/hook":                 false,
		"HTTPS://svc.example/hook":                 false,
		"https://svc.example./hook":                false,
		"https://svc.example.evil.example/":        false,
		"https://evil.example/https://svc.example": false,
		"https://a.svc.example/":                   false,
	} {
		if err := notify.CheckURL(url, origins, false); (err == nil) != want {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{"https://svc.example/hook", "https://[::1]:8443/", "https://a@b/", "https://a:/#", "http://0x7f.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, url string) {
		if notify.CheckURL(url, nil, false) != nil {
			return
		}
		if !strings.HasPrefix(strings.ToLower(url), "https://") || len(url) > notify.MaxURL || strings.ContainsAny(url, "#\r\n \\") {
			t.Errorf("%q", url)
		}
		rest := url[len("https://"):]
		host, _, _ := strings.Cut(rest+"/", "/")
		host, _, _ = strings.Cut(host, "?")
		if strings.Contains(host, "@") {
			t.Errorf("%q has a user", url)
		}
		if err := notify.CheckURL(url, []string{url[:len("https://")] + host}, false); err != nil {
			t.Errorf("%q is not of its own origin %q: %v", url, host, err)
		}
	})
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	var s notify.Schedule
	if err := s.UnmarshalText([]byte(notify.DefaultSchedule)); err != nil {
		t.Fatal(err)
	}
	middle := s.WithJitter(func() float64 { return 0.5 })
	var sum time.Duration
	for i, want := range []time.Duration{0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
		10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour} {
		if got, ok := middle.Next(i); !ok || got != want {
			t.Errorf("%d: %s, %v", i, got, ok)
		}
		sum += want
		least, _ := s.WithJitter(func() float64 { return 0 }).Next(i)
		most, _ := s.WithJitter(func() float64 { return 1 }).Next(i)
		if drawn, _ := s.Next(i); least != want*4/5 || most != want*6/5 || drawn < least || drawn > most {
			t.Errorf("%d: %s to %s", i, least, most)
		}
	}
	if s.Attempts() != 10 || sum < 75*time.Hour || sum > 76*time.Hour {
		t.Errorf("%d attempts in %s", s.Attempts(), sum)
	}
	for _, i := range []int{-1, 10, 11} {
		if _, ok := s.Next(i); ok {
			t.Errorf("%d attempts, and another", i)
		}
	}
	for _, bad := range []string{"", "5", "5s,", "-1s", "5s,x", "169h", strings.Repeat("1s,", 50) + "1s"} {
		if err := s.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if s.Attempts() != 10 {
		t.Error("a broken one has changed it")
	}
}
