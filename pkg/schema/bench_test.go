package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"hub.internal/pkg/schema"
)

func jsonOf(v any) ([]byte, error) { return json.Marshal(v) }

type segmentIn struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	Targets []target `json:"targets"`
}

type target struct {
	ExternalID string          `json:"externalId"`
	Snapshot   json.RawMessage `json:"snapshot"`
}

func segmentSchema() *schema.Schema {
	return schema.Object(
		schema.Required("name", schema.String("", schema.Length(1, 200))),
		schema.Required("kind", schema.String("", schema.Enum("brand", "partner"))),
		schema.Required("targets", schema.Array("", schema.Object(
			schema.Required("externalId", schema.String("", schema.Length(1, 200))),
			schema.Optional("snapshot", schema.FreeObject("")),
		), schema.Items(1, 50_000))))
}

// mostMembers is a body of as many values as one may hold, all of them short members of large objects: what costs the most for its length.
func mostMembers() []byte {
	var b bytes.Buffer
	b.WriteString(`{"name":"win back","kind":"partner","targets":[`)
	for i := range 150 {
		fmt.Fprintf(&b, `{"externalId":"%d","snapshot":{`, i)
		for j := range schema.MaxMembers - 1 {
			fmt.Fprintf(&b, `"%d":1,`, j)
		}
		b.WriteString(`"last":1}},`)
	}
	b.WriteString(`{"externalId":"last"}]}`)
	return b.Bytes()
}

// segmentBody is a create_segment of 50,000 targets, about 12 MB.
func segmentBody() []byte {
	var b bytes.Buffer
	b.WriteString(`{"name":"win back","kind":"partner","targets":[`)
	for i := range 50_000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(
			&b,
			`{"externalId":"%d","snapshot":{"brand_id":%d,"brand_name":"브랜드 %d","president":"Kim \"K\" `+
				`Minsu","category":{"id":%d,"name":"beauty"},"country_code":"KR","last_campaign_at":"2026-01-31T09:00:00","tags":["quiet",`+
				`"verified"],"ratio":0.%06d,"contact":null}}`,
			i,
			i*7,
			i,
			i%100,
			i,
		)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

func BenchmarkValidate(b *testing.B) {
	segment := schema.Bind[segmentIn](segmentSchema())
	segment.Bound(large)
	body := segmentBody()
	b.Run("validate", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if f := segment.Validate(b.Context(), body); f != nil {
				b.Fatal(f)
			}
		}
	})
	b.Run("validate and decode", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if in, f := segment.Decode(b.Context(), body); f != nil || len(in.Targets) != 50_000 {
				b.Fatal(f)
			}
		}
	})
	most := mostMembers()
	b.Run("most members", func(b *testing.B) {
		b.SetBytes(int64(len(most)))
		b.ReportAllocs()
		for b.Loop() {
			if _, f := segment.Decode(b.Context(), most); f != nil {
				b.Fatal(f)
			}
		}
	})
	b.Run("most members, a name twice at the end", func(b *testing.B) {
		twice := append(bytes.TrimSuffix(most, []byte("}")), `,"name":"again"}`...)
		b.SetBytes(int64(len(twice)))
		b.ReportAllocs()
		for b.Loop() {
			if _, f := segment.Decode(b.Context(), twice); f == nil {
				b.Fatal("a name is there twice")
			}
		}
	})
	small := []byte(`{"name":"n","kind":"brand","targets":[{"externalId":"1"}]}`)
	b.Run("small", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, f := segment.Decode(b.Context(), small); f != nil {
				b.Fatal(f)
			}
		}
	})
}
