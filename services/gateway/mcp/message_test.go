package mcp_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestIdsAreAnsweredAsTheyWereSent, by whichever way a message is answered, or are refused.
func TestIdsAreAnsweredAsTheyWereSent(t *testing.T) {
	t.Parallel()
	e := newFixture(t)
	messages := map[string]string{
		"a call":                     `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"list_segments","arguments":{}}}`,
		"a call of nothing":          `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"nothing","arguments":{}}}`,
		"a call without its name":    `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"arguments":{}}}`,
		"a call of several versions": `{"jsonrpc":"1.0","id":%s,"method":"tools/call","params":{"name":"list_segments"}}`,
		"a list":                     `{"jsonrpc":"2.0","id":%s,"method":"tools/list"}`,
		"a ping":                     `{"jsonrpc":"2.0","id":%s,"method":"ping"}`,
		"an unknown method":          `{"jsonrpc":"2.0","id":%s,"method":"no/such","params":{}}`,
	}
	for name, message := range messages {
		for _, id := range []string{`1`, `0`, `-7`, `9007199254740993`, `123456789012345678901234567890`, `1.0`, `1e2`, `"a"`, `""`, `"1.5"`,
			`"\ud800"`, `"\u0041"`, `"<&>"`, `"é😀\/\n"`, `"` + strings.Repeat("x", 5000) + `"`} {
			a := e.post(t, e.urls[0], allScopes, fmt.Sprintf(message, id))
			if !strings.Contains(a.body, `"id":`+id+`,`) && !strings.Contains(a.body, `"id":`+id+`}`) {
				t.Errorf("%s with the id %.100s is answered %d %.300s", name, id, a.status, a.body)
			}
		}
		for _, id := range []string{`1.5`, `1e-2`, `-0.1`, `null`, `true`, `[1]`, `{"a":1}`, "\"\xff\""} {
			a := e.post(t, e.urls[0], allScopes, fmt.Sprintf(message, id))
			if a.status != 400 || a.Error == nil || a.Error.Code != -32600.0 || string(a.ID) != "null" {
				t.Errorf("%s with the id %q is answered %d %.300s", name, id, a.status, a.body)
			}
		}
	}
	batch := e.post(t, e.urls[0], allScopes, `[`+fmt.Sprintf(messages["a call"], `"\ud800"`)+`,`+fmt.Sprintf(messages["a ping"], `1.0`)+`]`,
		"Mcp-Protocol-Version", "2025-03-26")
	if !strings.Contains(batch.body, `"id":"\ud800"`) || !strings.Contains(batch.body, `"id":1.0`) {
		t.Errorf("a batch is answered %d %.300s", batch.status, batch.body)
	}
}

// TestAnEnvelopeIsBoundedInWhatItHolds: what the protocol makes things of is small, however few bytes its parts have.
func TestAnEnvelopeIsBoundedInWhatItHolds(t *testing.T) {
	t.Parallel()
	e := newFixture(t)
	const head = `{"jsonrpc":"2.0","id":1,`
	call := head + `"method":"tools/call","params":{"name":"list_segments","arguments":{},`
	for name, body := range map[string]string{
		"a batch":                   `[{}` + strings.Repeat(",{}", 100_000) + `]`,
		"members":                   head + numbered(200_000) + `,"method":"ping"}`,
		"members of params":         call + numbered(200_000) + `}}`,
		"values of _meta":           call + `"_meta":{"a":[[]` + strings.Repeat(",[]", 20_000) + `]}}}`,
		"members of _meta":          call + `"_meta":{` + numbered(10_001) + `}}}`,
		"depth of _meta":            call + `"_meta":{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}}`,
		"bytes, read no further":    head + `"method":"ping","params":{"x":[` + strings.Repeat("[],", 1<<19) + `no JSON`,
		"bytes of a batch":          `[` + strings.Repeat(head+`"method":"ping","params":"`+strings.Repeat("x", 1<<19)+`"},`, 3) + `no JSON`,
		"bytes of what no call has": head + `"method":"ping","params":{"arguments":"` + strings.Repeat("x", 1<<20) + `"}}`,
		"values of a list's":        head + `"method":"tools/list","params":{"a":[[]` + strings.Repeat(",[]", 20_000) + `]}}`,
	} {
		if a := e.post(t, e.urls[0], allScopes, body); a.status != 400 || a.Error == nil || a.Error.Code != -32600.0 {
			t.Errorf("%s: %d %.300s", name, a.status, a.body)
		}
	}
	if a := e.post(t, e.urls[0], allScopes, call+`"_meta":{"a":[1`+strings.Repeat(",1", 9_000)+`]}}}`); a.status != 200 || a.Error != nil {
		t.Errorf("a large _meta: %d %.300s", a.status, a.body)
	}
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":1,`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}
