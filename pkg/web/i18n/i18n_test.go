package i18n_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hub.internal/pkg/web/i18n"
)

var korean = i18n.Languages[1]

func TestTemplate(t *testing.T) {
	for name, c := range map[string]struct {
		source   string
		messages map[string]string
		want     string
	}{
		"a text": {`<p>Mails</p>`, map[string]string{"Mails": "메일"}, `<p>메일</p>`},
		"blanks": {"<p>\n  Two\n  words </p>", map[string]string{"Two words": "두 단어"}, "<p>\n  두 단어 </p>"},
		"values": {`<p>{{.A}} of {{number .B}}</p>`, map[string]string{"{1} of {2}": "{2} 중 {1}"}, `<p>{{number .B}} 중 {{.A}}</p>`},
		"a sentence": {`<p>by <bdi class="x">{{.By}}</bdi>, now</p>`,
			map[string]string{"by <bdi>{1}</bdi>, now": "지금, <bdi>{1}</bdi> 님"},
			`<p>지금, <bdi class="x">{{.By}}</bdi> 님</p>`},
		"two tags": {`<p><b id="a">A</b> or <b id="b">B</b></p>`,
			map[string]string{"<b>A</b> or <b2>B</b2>": "<b2>ㄴ</b2> 또는 <b>ㄱ</b>"},
			`<p><b id="b">ㄴ</b> 또는 <b id="a">ㄱ</b></p>`},
		"no sentence": {`<p><span>One</span> <span>Two</span></p>`,
			map[string]string{"One": "하나", "Two": "둘"},
			`<p><span>하나</span> <span>둘</span></p>`},
		"a choice": {`{{if .A}}yes{{else}}no{{end}} at {{.B}}`,
			map[string]string{"yes": "예", "no": "아니오", "at {1}": "{1}에"},
			`{{if .A}}예{{else}}아니오{{end}} {{.B}}에`},
		"cut tags": {`<b>{{if .A}}yes{{end}} no</b> end`,
			map[string]string{"yes": "예", "no": "아니오", "end": "끝"},
			`<b>{{if .A}}예{{end}} 아니오</b> 끝`},
		"an attribute": {`<a href="/x" title="Go {{.A}}"{{if .B}} aria-label="To {{if .C}}here{{end}}"{{end}}>On</a>`,
			map[string]string{"Go {1}": "{1} 가기", "To": "로", "here": "여기", "On": "켬"},
			`<a href="/x" title="{{.A}} 가기"{{if .B}} aria-label="로 {{if .C}}여기{{end}}"{{end}}>켬</a>`},
		"not read": {`<a href="On" class="On"><code>On</code></a><!-- On -->`,
			map[string]string{"On": "켬"},
			`<a href="On" class="On"><code>On</code></a><!-- On -->`},
		"a script": {`<script>if (a<b) On</script><p>On</p>`, map[string]string{"On": "켬"}, `<script>if (a<b) On</script><p>켬</p>`},
		"quotes inside": {`<p title="{{asset "On"}} On">{{print "}}" "On"}}</p>`,
			map[string]string{"{1} On": "{1} 켬"},
			`<p title="{{asset "On"}} 켬">{{print "}}" "On"}}</p>`},
		"missing":  {"<p>Nobody\n says this</p>", nil, "<p>Nobody\n says this</p>"},
		"entities": {`<p>&lt;{{.A}}&gt;</p>`, nil, `<p>&lt;{{.A}}&gt;</p>`},
	} {
		t.Run(name, func(t *testing.T) {
			catalogue, err := i18n.Load(korean, files(t, c.messages))
			if err != nil {
				t.Fatal(err)
			}
			got, err := catalogue.Template(c.source)
			if err != nil || got != c.want {
				t.Errorf("%s (%v), want %s", got, err, c.want)
			}
			said, err := i18n.Messages(c.source)
			if err != nil {
				t.Error(err)
			}
			for m := range c.messages {
				if name != "not read" && !slices.Contains(said, m) {
					t.Errorf("%q is not among %q", m, said)
				}
			}
		})
	}
	if _, err := i18n.Messages(`<p title="a`); err == nil {
		t.Error("a tag without end was taken")
	}
}

func TestATranslationSaysAllOfIt(t *testing.T) {
	for message, translation := range map[string]string{"{1} of {2}": "{1}", "<b>x</b>": "x", "%d mails": "메일", "%s by %s": "%[2]s",
		"x": `a"b`} {
		if _, err := i18n.Load(korean, files(t, map[string]string{message: translation})); err == nil {
			t.Errorf("%q was taken for %q", translation, message)
		}
	}
	c, err := i18n.Load(korean, files(t, map[string]string{"%s by %s": "%[2]s: %[1]s", "{1} mails": "메일 {1}통"}))
	if err != nil || c.Text("%s by %s", "a", "b") != "b: a" || c.Plural("3", false, "mail", "mails") != "메일 3통" ||
		c.Plural("1", true, "key", "keys") != "1 key" {
		t.Errorf("%v", err)
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct{ chosen, accepted, want string }{
		{"", "", "en"}, {"", "ko-KR,ko;q=0.9,en-US;q=0.8", "ko"}, {"", "en-US,ko;q=0.5", "en"}, {"", "de,ko;q=0.5", "ko"}, {"", "de", "en"},
		{"en", "ko", "en"}, {"ko", "en", "ko"}, {"xx", "ko", "ko"}, {"", "*", "en"}, {"", ";;;", "en"}, {"", "ko;q=0,en", "en"},
		{"", "ko" + strings.Repeat(",en-AU;q=0.5", 50), "ko"}, {"", strings.Repeat("k", 300), "en"},
	} {
		if got := i18n.Match(c.chosen, c.accepted).Code(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func files(t *testing.T, messages map[string]string) fstest.MapFS {
	t.Helper()
	b, err := json.Marshal(messages)
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{"ko.json": {Data: b}}
}
