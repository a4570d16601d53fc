package jsontree_test

import (
	"strings"
	"testing"

	"hub.internal/pkg/jsontree"
)

func TestMembers(t *testing.T) {
	for object, want := range map[string]string{
		`{}`:                               "",
		` {"b": 1, "a" : [2, {"x":3}]} `:   `b=1;a=[2, {"x":3}];`,
		`{"b":1.50,"a":null,"b":"\u0061"}`: `b=1.50;a=null;b="\u0061";`,
		`{"\u0062\"":{"d":1,"c":2},"한글":true}`: `b"={"d":1,"c":2};한글=true;`,
		`{"n":123456789012345678901234567890}`: `n=123456789012345678901234567890;`,
	} {
		members, err := jsontree.Members([]byte(object))
		var got strings.Builder
		for _, m := range members {
			got.WriteString(m.Name + "=" + string(m.Value) + ";")
		}
		if err != nil || got.String() != want {
			t.Errorf("%s: %s, %v", object, got.String(), err)
		}
	}
	for _, none := range []string{"", " ", "null", "1", `"a"`, `[{"a":1}]`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,}`, `{"a":1}}`,
		`{"a":1} {}`, `{a:1}`} {
		if members, err := jsontree.Members([]byte(none)); err == nil || members != nil {
			t.Errorf("%q has the members %v", none, members)
		}
	}
}
