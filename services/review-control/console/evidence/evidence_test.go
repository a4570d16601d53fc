package evidence

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// text writes a value down for comparison.
func (v Value) text() string {
	switch v.Kind {
	case "object", "list":
		var b strings.Builder
		for _, m := range v.Members {
			b.WriteString(m.Name + "=" + m.Value.text() + " ")
		}
		return v.Kind + "(" + strings.TrimSpace(b.String()) + ")"
	}
	return v.Kind + ":" + v.Text
}

func TestEvidence(t *testing.T) {
	for raw, want := range map[string]string{
		"": ":", "null": "null:null", "true": "bool:true", `"x"`: "text:x", `""`: "text:", "1e400": "number:1e400",
		"12345678901234567890":           "number:12345678901234567890",
		`{"z":1,"a":{"b":[null,false]}}`: "object(z=number:1 a=object(b=list(=null:null =bool:false)))", "{}": "object()", "[]": "list()",
		`{"a":`: `raw:{"a":`, "[1": "raw:[1", "x": "raw:x",
		`{"a":1,"a":2}`: "object(a=number:1 a=number:2)", `"<b>"`: "text:<b>",
	} {
		v, cut := Read(json.RawMessage(raw), 100)
		if got := v.text(); got != want || cut {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
	v, cut := Read(json.RawMessage(`{"a":[1,2,3,4],"b":2}`), 4)
	if got := v.text(); !cut || got != "object(a=list(=number:1 =number:2 =raw:…))" {
		t.Errorf("cut: %s, %v", got, cut)
	}
	deep := strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)
	v, cut = Read(json.RawMessage(deep), 1000)
	if got := v.text(); cut || strings.Count(got, "object(") != maxDepth+1 || !strings.Contains(got, `raw:{"a":`) {
		t.Errorf("deep: %s", got)
	}
	if !(Value{Text: strings.Repeat("é", foldedText+1)}).Long() || (Value{Text: strings.Repeat("é", foldedText)}).Long() {
		t.Error("what is long")
	}
}

func FuzzEvidence(f *testing.F) {
	for _, seed := range []string{`{"a":[1,null,"x"]}`, `[[[[]]]]`, `{"a"`, "\xff", `"\ud800"`} {
		f.Add(seed, 5)
	}
	f.Fuzz(func(t *testing.T, raw string, most int) {
		v, _ := Read(json.RawMessage(raw), most%50)
		if got := v.text(); json.Valid([]byte(raw)) && !utf8.ValidString(got) && v.Kind != "raw" {
			t.Errorf("%q", got)
		}
		v.Long()
		v.Start()
		v.Empty()
	})
}

// TestNames: names are words, moments are moments, and what says little is apart.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"brand_id": "Brand id", "brandId": "Brand id", "lastCampaignAt": "Last campaign at", "URL": "URL", "brand_URL": "Brand URL", "id": "Id",
		"이름": "이름", "a b": "a b", "": "", "__x": "__x", "x1Y": "X1 Y",
	} {
		if got := (Member{Name: name}).Label(); got != want {
			t.Errorf("%q is called %q", name, got)
		}
	}
	v, _ := Read(json.RawMessage(`{"brand_id":1,"ids":[1,2],"paid":"Paid","candid":"x","id":{"a":1},"closed":null,`+
		`"at":"2026-11-26T09:00:00+09:00"}`), 100)
	names := func(list []Member) (s string) {
		for _, m := range list {
			s += m.Name + " "
		}
		return s
	}
	if got := names(v.Told()) + "/ " + names(v.IDs()) + "/ " + names(v.Without()); got != "paid candid id at / brand_id ids / closed " {
		t.Error(got)
	}
	if at := v.Members[6].Value; at.Kind != "moment" || at.At.UTC().Hour() != 0 {
		t.Errorf("%+v", at)
	}
	for text, want := range map[string]string{"2030-11-21T00:00:00": "2030-11-21T00:00:00Z",
		"2030-11-21T00:00:00.25": "2030-11-21T00:00:00.25Z", "2030-11-21": "", "2030-11-21 00:00:00": "",
		"2030-13-21T00:00:00": "", "2030-11-21T00:00:00+09:00": "2030-11-20T15:00:00Z"} {
		got, _ := Read(json.RawMessage(`"`+text+`"`), 1)
		says := got.At.UTC().Format(time.RFC3339Nano)
		if (got.Kind == "moment") != (want != "") || want != "" && says != want || got.Text != text {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if got := names(v.Take(func(name string) bool { return name == "paid" })); got != "paid " || len(v.Members) != 6 {
		t.Errorf("%s was taken of %+v", got, v)
	}
}
