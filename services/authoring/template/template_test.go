package template

import (
	"encoding/json"
	"html"
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
