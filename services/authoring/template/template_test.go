package template

import (
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	nethtml "golang.org/x/net/html"
	"pgregory.net/rapid"
)

// TestTemplateIsWhatItSays builds a template from pieces whose result is known.
func TestTemplateIsWhatItSays(t *testing.T) {
	t.Parallel()
	literal := rapid.StringOf(rapid.RuneFrom([]rune("ab <&}\n가\"'/p>"))).Filter(func(s string) bool { return !strings.Contains(s, "{{") })
	key := rapid.StringMatching(`[a-z가 .]{1,8}`)
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.MapOfN(key, rapid.String(), 1, 4).Draw(t, "context")
		context, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		var template, text, escaped strings.Builder
		for range rapid.IntRange(0, 6).Draw(t, "pieces") {
			piece := literal.Draw(t, "literal")
			template.WriteString(piece)
			text.WriteString(piece)
			escaped.WriteString(piece)
			k := rapid.SampledFrom(keysOf(members)).Draw(t, "key")
			template.WriteString("{{context." + k + "}}")
			text.WriteString(members[k])
			escaped.WriteString(html.EscapeString(members[k]))
		}
		parsed, err := Parse(template.String())
		if err != nil {
			t.Fatalf("%q: %v", template.String(), err)
		}
		want := text.String()
		got, err := parsed.Render(Values{Context: contextOf(context)})
		if parsed.HTML { // in a tag more is escaped
			want, got = html.UnescapeString(escaped.String()), html.UnescapeString(got)
		}
		if err != nil || got != want {
			t.Fatalf("%q is %q, %v; want %q", template.String(), got, err, want)
		}
	})
}

// contextOf returns the members of a context.
func contextOf(raw []byte) func() (map[string]jsontext.Value, error) {
	return func() (members map[string]jsontext.Value, err error) { return members, json.Unmarshal(raw, &members) }
}

func keysOf(m map[string]string) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

func TestWhatIsHTML(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"<p>a</p>": true, "a<br>b": true, "<BR/>": true, "<a href=\"x\">": true, "<!DOCTYPE html>": true, "<!-- x -->": true, "<h1>": true,
		"</div>": true, "<img src=x onerror=y>": true,
		"": false, "a < b > c": false, "<kim@partner.example>": false, "<https://hub.example>": false, "x<y": false, "<p": false,
		"<script>": false, "{{context.html}}": false, "<x-y>": false, "<pa>": false,
	} {
		if got, err := Parse(text); err != nil || got.HTML != want {
			t.Errorf("%q: %t, %v", text, got.HTML, err)
		}
	}
}

// TestAValueBringsNoMarkup puts hostile values wherever a template can have one: what a browser makes of the
// mail has the elements and attributes of the template, and no others.
func TestAValueBringsNoMarkup(t *testing.T) {
	t.Parallel()
	templates := []string{
		"<p>{{context.a}}</p>",
		`<p title="{{context.a}}">x</p>`,
		"<p title='{{context.a}}'>x</p>",
		"<p title={{context.a}}>x</p>",
		"<p title = {{context.a}} lang=en>x</p>",
		"<p title=a{{context.a}}b>x</p>",
		`<p title=a="{{context.a}}">x</p>`,
		`<p title=""{{context.a}}>x</p>`,
		"<p {{context.a}}>x</p>",
		"<p a{{context.a}}>x</p>",
		"<p {{context.a}}={{context.a}}>x</p>",
		"<p>a<{{context.a}}>x</p>",
		"<p>a<b{{context.a}}>x</p>",
		"<p>a</{{context.a}}>x</p>",
		"<p><!-- {{context.a}} --></p>",
		"<p><!{{context.a}}></p>",
		"<p><?{{context.a}}></p>",
		"<p>a < {{context.a}}</p>",
		"<p>a <{{context.a}}",
		"<p><<{{context.a}}",
		`<a href="{{context.a}}">x</a>`,
		"<a href={{context.a}}>x</a>",
		`<a href="https://x.example/{{context.a}}?b={{context.a}}#{{context.a}}">x</a>`,
		"<a href=https://x.example/{{context.a}}?b={{context.a}}>x</a>",
		`<p style="color:{{context.a}}">x</p>`,
		"<p title='a\"{{context.a}}'>x</p>",
		"<p title={{context.a}}{{context.a}}>x</p>",
	}
	hostile := []string{
		"x onclick=alert(1)",
		"<b onclick=x>",
		`" onclick="x`,
		"' onclick='x",
		"><b>x",
		"-->",
		"/onclick=x",
		"b onclick=x",
		"x\tonclick=x",
		"x\nonclick=x",
		"x\ronclick=x",
		"x\fonclick=x",
		"`onclick=x",
		"=onclick=x",
		"javascript:alert(1)",
		"b",
		"/b",
		"!--",
		"&lt;b&gt;",
		"&#60;b",
		"\x00<b>",
	}
	names := func(template, value string) (list []string) {
		parsed, err := Parse(template)
		if err != nil || !parsed.HTML {
			return nil
		}
		raw, err := json.Marshal(map[string]string{"a": value})
		if err != nil {
			t.Fatal(err)
		}
		text, err := parsed.Render(Values{Context: contextOf(raw)})
		if err != nil {
			t.Fatal(err)
		}
		tokens := nethtml.NewTokenizer(strings.NewReader(text))
		for {
			switch kind := tokens.Next(); kind {
			case nethtml.ErrorToken:
				return list
			case nethtml.StartTagToken, nethtml.EndTagToken, nethtml.SelfClosingTagToken:
				token := tokens.Token()
				list = append(list, kind.String())
				for range token.Attr {
					list = append(list, "attribute")
				}
			default:
				list = append(list, kind.String())
			}
		}
	}
	for _, template := range templates {
		for _, value := range hostile {
			// What a word brings that has nothing in it is the template's own doing.
			if got, want := names(
				template,
				value,
			), names(
				template,
				"word",
			); !slices.Equal(got, want) &&
				!slices.Equal(got, names(template, "1")) {
				t.Errorf("%s with %q has %v, want %v", template, value, got, want)
			}
		}
	}
}

// TestAValueInAnAddress: what stands in the address of a link is written as a part of that, and only there.
func TestAValueInAnAddress(t *testing.T) {
	t.Parallel()
	const odd, parameter, elsewhere = `L'Oré"al & O/달빛 +#%41%4`, `L%27Oré%22al%20%26%20O/달빛%20%2B%23%41%254`,
		`L%27Oré%22al%20&%20O/달빛%20+#%41%4`
	const plainly = "kim@o.example/달빛-마루.1_~:,!$()*"
	for template, want := range map[string]string{
		`<a href="https://x.example/apply?brand=V&amp;src=V">`:       `https://x.example/apply?brand=P&src=P`,
		`<a href='https://x.example/?brand=a-V#V'>`:                  `https://x.example/?brand=a-P#E`,
		`<a class=b HREF = "https://x.example/?V=V&V">`:              `https://x.example/?E=P&E`,
		`<a href=https://x.example/V?b=V>`:                           `https://x.example/E?b=P`,
		`<a href="https://x.example/V&b=V">`:                         `https://x.example/E&b=P`,
		`<a href="https://x.example/a&b=V">`:                         `https://x.example/a&b=E`,
		`<a href="https://x.example/&#63;a&#61;V&amp;b&#61;c=V#?V">`: `https://x.example/?a=P&b=c=P#?E`,
		`<a href="V">`:               `V`,
		`<a href=V>`:                 `V`,
		`<a href=" V/V?a=V&b=V">`:    ` V/E?a=P&b=P`,
		`<a href="V?a=V&#38;b=V">`:   `V?a=P&b=P`,
		`<a href="VV">`:              `VE`,
		`<a href="mailto:V?body=V">`: `mailto:E?body=P`,
		`<img src="https://x.example/?a=V" title="?a=V" alt='V'>`:   `https://x.example/?a=P ?a=V V`,
		`<a data-href="?a=V" title="href='https://x.example/?a=V">`: `?a=V href='https://x.example/?a=V`,
		`<a href="https://x.example/?a=" title="V" src="?a=V">`:     `https://x.example/?a= V ?a=P`,
	} {
		parsed, err := Parse(strings.ReplaceAll(template, "V", "{{context.v}}"))
		if err != nil {
			t.Fatal(err)
		}
		for value, as := range map[string][2]string{odd: {parameter, elsewhere}, plainly: {plainly, plainly}} {
			got, err := parsed.Render(Values{Context: func() (map[string]jsontext.Value, error) {
				raw, err := json.Marshal(value)
				return map[string]jsontext.Value{"v": raw}, err
			}})
			if err != nil {
				t.Fatal(err)
			}
			tokens := nethtml.NewTokenizer(strings.NewReader(got))
			tokens.Next()
			var values []string
			for _, a := range tokens.Token().Attr {
				if a.Key != "class" {
					values = append(values, a.Val)
				}
			}
			says := strings.NewReplacer("V", value, "P", as[0], "E", as[1]).Replace(want)
			if strings.Join(values, " ") != says {
				t.Errorf("%s:\n got %q\nwant %q", template, values, says)
			}
		}
	}
}

// TestAParameterIsTheValue: whoever reads the query of a link reads the value, and no parameter more, and what needs no encoding is
// written as it is.
func TestAParameterIsTheValue(t *testing.T) {
	t.Parallel()
	parsed, err := Parse(`<a href="https://x.example/?a={{toName}}&amp;b=1">`)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOfN(rapid.RuneFrom([]rune("aZ9가é&#+= ;/?'\"\\{}<>`%-._~@:,!$()*")), 1, 12, -1).Draw(t, "name")
		got, err := parsed.Render(Values{ToName: name})
		if err != nil {
			t.Fatal(err)
		}
		tokens := nethtml.NewTokenizer(strings.NewReader(got))
		tokens.Next()
		href := tokens.Token().Attr[0].Val
		to, err := url.Parse(href)
		if err != nil {
			t.Fatalf("%q: %v", href, err)
		}
		q, err := url.ParseQuery(to.RawQuery)
		read := encoded.ReplaceAllStringFunc(name, func(s string) string {
			s, _ = url.PathUnescape(s)
			return s
		})
		if err != nil || len(q) != 2 || q.Get("a") != read || q.Get("b") != "1" || to.Fragment != "" {
			t.Fatalf("%q is %q: %v, %v", name, href, q, err)
		}
		if plain.MatchString(name) && href != "https://x.example/?a="+name+"&b=1" {
			t.Fatalf("%q is %q", name, href)
		}
	})
}

// encoded is a byte in an address, plain what nothing of an address has to be encoded of.
var (
	encoded = regexp.MustCompile(`(?i)%[0-9a-f]{2}`)
	plain   = regexp.MustCompile(`^[a-zA-Z0-9._~가é@:,!$()*/?=-]*$`)
)

// TestUsual: a value is ordinary by where it stands.
func TestUsual(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		template, value string
		want            bool
	}{
		{"<p>V</p>", "O'Brien & \"Co\" <b>", true},
		{"<p>V</p>", "a\u200bb", false},
		{"V", "a b", true},
		{"V", "a\u200bb", false},
		{`<a href="V">`, "https://hub.example/a?b=c", true},
		{`<a href="V?b=1">`, "javascript:alert(1)", false},
		{`<a href="V">`, "mailto:a@b.example", false},
		{`<a href="V">`, "", false},
		{`<a href="https://hub.example/V?b=V">`, "달빛-70001", true},
		{`<a href="https://hub.example/V">`, "O'달빛", false},
		{`<a href="https://hub.example/?b=V">`, "a\u00a0b", false},
		{`<a href="https://hub.example/?b=V">`, strings.Repeat("a", 4000), false},
		{`<p style="color:V">`, "red", false},
	} {
		parsed, err := Parse(strings.ReplaceAll(c.template, "V", "{{context.v}}"))
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := json.Marshal(map[string]string{"v": c.value})
		if got := parsed.Usual(Values{Context: contextOf(raw)}); got != c.want {
			t.Errorf("%s with %q: %t", c.template, c.value, got)
		}
	}
	if missing, _ := Parse("{{toName}}"); missing.Usual(Values{}) {
		t.Error("what has no value is usual")
	}
}

// FuzzTemplate looks for a text that is accepted and then cannot be rendered, or crashes.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"", "{{toName}}", "{{context.a}}", "{{", "}}", "{{{", "{{context.{}}", "a{{toEmail}}b{{toEmail}}"} {
		f.Add(s, `{"a":"b"}`)
	}
	f.Fuzz(func(t *testing.T, text, context string) {
		parsed, err := Parse(text)
		if err != nil {
			return
		}
		v := Values{ToName: "N", ToEmail: "e@x.example", Context: contextOf([]byte(context))}
		missing := 0
		for _, err := range parsed.Pieces(v) {
			if err != nil {
				missing++
			}
		}
		if _, err := parsed.Render(v); (err != nil) != (missing > 0) {
			t.Fatalf("%q: %d missing, %v", text, missing, err)
		}
		if !strings.Contains(text, "{{") {
			if got, _ := parsed.Render(v); got != text {
				t.Fatalf("%q became %q", text, got)
			}
		}
	})
}
