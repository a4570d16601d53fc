package schema_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
)

// large bounds the largest bodies in bytes, and medium some that are quicker to make.
const large, medium = 32 << 20, large / 10

// manyTargets is a call of so many rows of a search, each with 15 members.
func manyTargets(rows int) []byte {
	var b strings.Builder
	b.WriteString(`{"name":"all","kind":"brand","targets":[`)
	for i := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"externalId":"%d","snapshot":{"brand_id":%d`, i, i)
		for m := range 14 {
			fmt.Fprintf(&b, `,"member_%d":"a value of %d"`, m, m)
		}
		b.WriteString("}}")
	}
	b.WriteString("]}")
	return []byte(b.String())
}

func oneTarget(snapshot string) []byte {
	return []byte(`{"name":"n","kind":"brand","targets":[{"externalId":"1","snapshot":` + snapshot + `}]}`)
}

func object(members int, value func(int) string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"k%d":%s`, i, value(i))
	}
	b.WriteByte('}')
	return b.String()
}

func one(int) string { return "1" }

// TestBodiesAreBoundedInWhatTheyHold: beside its bytes a body is bounded in values, in the members of an object and in depth, wherever
// they stand, and what is within these bounds passes.
func TestBodiesAreBoundedInWhatTheyHold(t *testing.T) {
	t.Parallel()
	b := schema.Bind[segmentIn](segmentSchema())
	b.Bound(medium)
	few := schema.Bind[segmentIn](segmentSchema()) // as for a small body
	hundred := object(100, one)
	for name, c := range map[string]struct {
		of         *schema.Binding[segmentIn]
		input      []byte
		path, rule string
	}{
		"a tenth of the most targets": {b, manyTargets(5_000), "", ""},
		"10,000 members":              {b, oneTarget(object(10_000, one)), "", ""},
		"10,001 members":              {b, oneTarget(object(10_001, one)), "/targets/0/snapshot", "maxProperties"},
		"150,000 members":             {b, oneTarget(object(150_000, one)), "/targets/0/snapshot", "maxProperties"},
		"1,500 objects of 100":        {b, oneTarget(object(1_500, func(int) string { return hundred })), "", ""},
		"2,500 objects of 100":        {b, oneTarget(object(2_500, func(int) string { return hundred })), "", "maxValues"},
		"a list of as many":           {b, oneTarget(`{"a":[` + hundred + strings.Repeat(","+hundred, 2_500) + `]}`), "", "maxValues"},
		"100,000 less what is around": {few, oneTarget(`{"a":[1` + strings.Repeat(",1", 100_000-9) + `]}`), "", ""},
		"one more":                    {few, oneTarget(`{"a":[1` + strings.Repeat(",1", 100_000-8) + `]}`), "", "maxValues"},
		"empty lists":                 {b, oneTarget(`{"a":[[]` + strings.Repeat(",[]", medium/16) + `]}`), "", "maxValues"},
		"depth":                       {b, oneTarget(strings.Repeat(`{"a":`, 61) + "1" + strings.Repeat("}", 61)), "", ""},
		"one deeper": {b, oneTarget(strings.Repeat(`{"a":`, 62) + "1" + strings.Repeat("}", 62)), "/targets/0/snapshot" +
			strings.Repeat("/a", 61),
			"maxDepth"},
		"members that nobody knows":   {b, []byte(strings.TrimSuffix(object(10_001, one), "}") + `,"name":"n"}`), "", "maxProperties"},
		"in a member of another type": {b, []byte(`{"name":` + object(10_001, one) + `}`), "/name", "maxProperties"},
	} {
		t.Run(name, func(t *testing.T) {
			_, f := c.of.Decode(t.Context(), c.input)
			if c.rule == "" && f != nil {
				t.Fatalf("is refused: %v", f)
			}
			if c.rule == "" {
				return
			}
			if got := violations(f); len(got) != 1 || got[0].Path != c.path || got[0].Rule != c.rule {
				t.Errorf("got %+.300v", got)
			}
			if f := schema.Within(t.Context(), c.input, schema.MaxValues(0)); f == nil {
				t.Error("it is within the bounds of any")
			}
		})
	}
	if f := schema.Within(t.Context(), []byte(`{"a":[1,{"b":null}],"a":"twice"}`), 6); f != nil {
		t.Error(f)
	}
	if f := schema.Within(t.Context(), []byte(`{"a":[1,{"b":null}],"a":"twice"}`), 5); f == nil || violations(f)[0].Rule != "maxValues" {
		t.Errorf("got %v", f)
	}
	if f := schema.Within(t.Context(), []byte(`{} {}`), 5); f == nil || violations(f)[0].Rule != "json" {
		t.Errorf("got %v", f)
	}
}

// TestWhatIsRefusedCostsLittle: what is beyond a bound is refused before anything is made of it.
func TestWhatIsRefusedCostsLittle(t *testing.T) {
	b := schema.Bind[segmentIn](segmentSchema())
	b.Bound(medium)
	for name, input := range map[string][]byte{
		"members": oneTarget(object(150_000, one)),
		"lists":   oneTarget(`{"a":[[]` + strings.Repeat(",[]", medium/16) + `]}`),
		"numbers": oneTarget(`{"a":[1` + strings.Repeat(",1", medium/16) + `]}`),
	} {
		if made := allocated(func() { b.Decode(t.Context(), input) }); made > 4<<20 {
			t.Errorf("%s: %d MiB were made of %d MiB", name, made>>20, len(input)>>20)
		}
	}
}

// allocated is how many bytes do has made, let go or not.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// endsAfter is a context that ends when it has been asked so often whether it has.
type endsAfter struct {
	context.Context
	asked, after int
}

func (c *endsAfter) Err() error {
	if c.asked++; c.asked > c.after {
		return context.DeadlineExceeded
	}
	return nil
}

func TestWorkEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := schema.Bind[segmentIn](segmentSchema())
	b.Bound(medium)
	ctx := &endsAfter{Context: t.Context(), after: 3}
	f := b.Validate(ctx, manyTargets(5_000))
	if f == nil || f.Code != fault.DB || !errors.Is(f, context.DeadlineExceeded) || ctx.asked != 4 {
		t.Errorf("after %d looks: %v", ctx.asked, f)
	}
}

func TestFreeObjectsSayTheirBound(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(schema.FreeObject("A row."))
	if err != nil || !strings.Contains(string(text), "A row. At most 10000 members.") {
		t.Errorf("%s, %v", text, err)
	}
}
