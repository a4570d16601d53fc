package lookalike_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hub.internal/services/authoring/lookalike"
)

func TestFind(t *testing.T) {
	keys := []string{"brand", "last_offer", "행사명"}
	for text, want := range map[string]string{
		"Dear {name}, {{toName}} {{context.brand}}": "{name}→{{toName}}",
		"Dear ${firstName} of {company}":            "${firstName}→{{toName}} {company}→{{context.company}}",
		"{ name }{name}":                            "{ name }→{{toName}} {name}→{{toName}}",
		"{Brand} {lastOffer}":                       "{Brand}→{{context.brand}} {lastOffer}→{{context.last_offer}}",
		"{context.brand} {0} {이름}님 [행사명]": "{context.brand}→{{context.brand}} {0}→{{context.KEY}} " +
			"{이름}→{{toName}} [행사명]→{{context.행사명}}",
		"[Name] [First Name] [Your Company] [[email]]": "[Name]→{{toName}} [First Name]→{{toName}} [Your " +
			"Company]→{{context.Your_Company}} [[email]]→{{toEmail}}",
		"*|FNAME|* %(name)s %name% %%email%% <%= name %> <<brand>>": "*|FNAME|*→{{toName}} %(name)s→{{toName}} %name%→{{toName}} " +
			"%%email%%→{{toEmail}} <%= name %>→{{toName}} <<brand>>→{{context.brand}}",
		"Dear %s, <Your Name>":   "%s→{{context.KEY}} <Your Name>→{{toName}}",
		"{% if x %}a{% endif %}": "{% if x %}→ {% endif %}→",
		"#{name} {{{toName}}}":   "#{name}→{{toName}}",
		"[광고] [한빛] [YouTube] [1] [sic] [iPhone 17] [Event] [link](https://x.example/{id})": "{id}→{{context.id}}",
		"p{color:red} .a{} { } {} [] {\"a\":1} {a\nb} {a;b} 100% of 5% [name](https://x)":  "",
		"https://x.example/%EC%9D%B4%EB%A6%84?a=%name 100%s %sale":                         "",
		"<p>Hello</p><b>name</b><!--[if mso]>x<![endif]--><a href=\"x\">[if]</a>":          "",
		"{" + strings.Repeat("x", 100) + "}":                                               "",
		"{a b c d e}":                                                                      "",
		"{\xff} [\xffname] {na\u202eme}":                                                   "",
		"}} {{ open {name}":                                                                "",
	} {
		var got []string
		for _, f := range lookalike.Find(text, keys, 9) {
			got = append(got, f.Text+"→"+f.Write)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if got := lookalike.Find("{a}{b}{a}{c}", nil, 2); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// TestTheTimeIsLinear reads a megabyte of what may begin a placeholder and never ends.
func TestTheTimeIsLinear(t *testing.T) {
	for _, piece := range []string{"{", "[", "<", "%", "*|", "${a", "{{", "[[name", "가{", "{a b c "} {
		start := time.Now()
		found := lookalike.Find(strings.Repeat(piece, (1<<20)/len(piece)), []string{"a"}, 5)
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("%q takes %s", piece, took)
		}
		_ = fmt.Sprint(found)
	}
}

func FuzzFind(f *testing.F) {
	f.Add("{name} {{toName}} [a](b) %s *|x|* <% y %>")
	f.Fuzz(func(t *testing.T, text string) {
		for _, found := range lookalike.Find(text, []string{"name"}, 5) {
			if !strings.Contains(text, found.Text) || len(found.Text) > 62 {
				t.Errorf("%q in %q", found.Text, text)
			}
		}
	})
}
