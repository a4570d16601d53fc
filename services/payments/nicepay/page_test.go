package nicepay_test

import (
	"testing"

	"hub.internal/services/payments/nicepay"
)

// TestPagesOfNobodyElse: what a payer is sent to is the vendor's, or of what stands in for it.
func TestPagesOfNobodyElse(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		config nicepay.Config
		page   string
		want   bool
	}{
		"the vendor's":            {nicepay.Config{}, "https://pay.nicepay.co.kr/v1/x", true},
		"one that ends like it":   {nicepay.Config{}, "https://evilnicepay.co.kr/", false},
		"one that begins like it": {nicepay.Config{}, "https://pay.nicepay.co.kr.evil.example/", false},
		"without TLS":             {nicepay.Config{}, "http://pay.nicepay.co.kr/", false},
		"code":                    {nicepay.Config{BaseURL: "http://127.0.0.1:1"}, "javascript:alert(1)", false},
		"a simulator's":           {nicepay.Config{BaseURL: "http://127.0.0.1:1"}, "http://localhost:2/pay", true},
		"the stand-in's, in production": {nicepay.Config{BaseURL: "https://pg.example.com", Production: true},
			"https://pg.example.com/pay", true},
		"the vendor's behind it": {nicepay.Config{BaseURL: "https://pg.example.com", Production: true},
			"https://pay.nicepay.co.kr/x", true},
		"somebody's behind it": {nicepay.Config{BaseURL: "https://pg.example.com", Production: true}, "https://evil.example/pay",
			false},
		"another port of it, in production": {nicepay.Config{BaseURL: "https://pg.example.com", Production: true},
			"https://pg.example.com:8443/", false},
		"a query and a fragment":  {nicepay.Config{}, "https://pay.nicepay.co.kr/v1/x?a=b&c=%22#top", true},
		"a quote":                 {nicepay.Config{}, `https://pay.nicepay.co.kr/"><script>`, false},
		"a quote in the query":    {nicepay.Config{}, `https://pay.nicepay.co.kr/?a="onload=x`, false},
		"a single quote":          {nicepay.Config{}, "https://pay.nicepay.co.kr/'x", false},
		"a bracket":               {nicepay.Config{}, "https://pay.nicepay.co.kr/<b>", false},
		"a space":                 {nicepay.Config{}, "https://pay.nicepay.co.kr/a b", false},
		"a tab":                   {nicepay.Config{}, "https://pay.nicepay.co.kr/\tx", false},
		"a line break":            {nicepay.Config{}, "https://pay.nicepay.co.kr/#\r\nx", false},
		"a backslash":             {nicepay.Config{}, `https://pay.nicepay.co.kr/\evil.example`, false},
		"what is no ASCII":        {nicepay.Config{}, "https://pay.nicepay.co.kr/결제", false},
		"a quote, of a simulator": {nicepay.Config{BaseURL: "http://127.0.0.1:1"}, `http://localhost:2/"x`, false},
	} {
		p, err := nicepay.New(row.config)
		if err != nil {
			t.Fatal(name, err)
		}
		if got := p.Payable(row.page); got != row.want {
			t.Errorf("%s: %s: %t", name, row.page, got)
		}
		p.Close()
	}
}
