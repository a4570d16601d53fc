package authoring

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"hub.internal/pkg/schema"
)

// segmentTargets reads the targets of a validated input where they are: snapshots are
// parts of raw, not copies. They end with ctx.
func segmentTargets(ctx context.Context, raw json.RawMessage) SegmentTargets {
	return elements(ctx, raw, func(t *SegmentTarget, name string, value jsontext.Value) error {
		switch name {
		case "externalId":
			return readInteger(value, &t.ExternalID)
		case "snapshot":
			t.Snapshot = value
		}
		return nil
	})
}

// draftTargets reads the targets of a validated input; contexts are parts of raw. They end with ctx.
func draftTargets(ctx context.Context, raw json.RawMessage) DraftTargets {
	return elements(ctx, raw, func(t *DraftTarget, name string, value jsontext.Value) error {
		switch name {
		case "externalId":
			return readInteger(value, &t.ExternalID)
		case "toEmail":
			return readText(value, &t.ToEmail)
		case "toName":
			return readText(value, &t.ToName)
		case "subject":
			return readText(value, &t.Subject)
		case "body":
			return readText(value, &t.Body)
		case "context":
			t.Context = value
		}
		return nil
	})
}

// elements yields the objects of a list, each made member by member.
func elements[T any](ctx context.Context, raw json.RawMessage, set func(*T, string, jsontext.Value) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		dec := decoder(raw)
		fail := func(err error) {
			var none T
			yield(none, fmt.Errorf("targets: %w", err))
		}
		if _, err := dec.ReadToken(); err != nil {
			fail(err)
			return
		}
		for dec.PeekKind() == '{' {
			var element T
			if err := ctx.Err(); err != nil {
				fail(err)
				return
			}
			if err := members(dec, &element, set); err != nil {
				fail(err)
				return
			}
			if !yield(element, nil) {
				return
			}
		}
		if _, err := dec.ReadToken(); err != nil {
			fail(err)
		}
	}
}

// decoder reads JSON that was validated, so that nothing has to be refused again. Over a
// bytes.Buffer it reads the text itself, and its values stay valid.
func decoder(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
}

// members calls set with each member of an object, in its order. The value is a part of the text, not a copy.
func members[T any](dec *jsontext.Decoder, element *T, set func(*T, string, jsontext.Value) error) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		member := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if err := set(element, member, value[:len(value):len(value)]); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// partnerOf reads the first member partner_id of a snapshot, which may be anything; nil for what is no id.
func partnerOf(snapshot []byte) (partner *int64) {
	_ = members(decoder(snapshot), &partner, func(partner **int64, name string, value jsontext.Value) error {
		if name != "partner_id" {
			return nil
		}
		if id, ok := sourceID(value); ok {
			*partner = &id
		}
		return io.EOF // what follows is not read
	})
	return partner
}

// sourceID reads an id of the source, which is a text beyond 2^53.
func sourceID(value jsontext.Value) (int64, bool) {
	if len(value) > len(`"-9223372036854775808"`) {
		return 0, false
	}
	id, err := strconv.ParseInt(string(bytes.Trim(value, `"`)), 10, 64)
	return id, err == nil
}

// snapshotIs tells in most cases, without reading it, that a snapshot is the row of its target: answers of search tools have
// the id so.
func snapshotIs(kind Kind, t SegmentTarget) bool {
	_, after, found := bytes.Cut(t.Snapshot, []byte(`"`+string(kind)+`_id":`))
	if !found {
		return false
	}
	end := bytes.IndexAny(after, ",}")
	if end < 0 {
		return false
	}
	id, ok := sourceID(after[:end])
	return ok && id == t.ExternalID
}

// anyID is the name under which snapshotIDs has the member id, which is that of whatever the row is of.
const anyID = "id"

// snapshotIDs are the ids that a snapshot has of itself, by kind: members such as brand_id or brandId, and those of a member
// brand, as get_brand answers it.
func snapshotIDs(snapshot []byte) map[string]int64 {
	ids := map[string]int64{}
	read := func(kind string, value jsontext.Value) {
		if id, ok := sourceID(value); ok {
			ids[kind] = id
		}
	}
	_ = members(decoder(snapshot), &ids, func(_ *map[string]int64, name string, value jsontext.Value) error {
		for _, kind := range Kinds() {
			switch {
			case name == kind+"_id", name == kind+"Id":
				read(kind, value)
			case name == kind && value.Kind() == '{':
				_ = members(decoder(value), &ids, func(_ *map[string]int64, name string, value jsontext.Value) error {
					if _, known := ids[kind]; !known && name == kind+"_id" {
						read(kind, value)
					}
					return nil
				})
			}
		}
		if name == anyID {
			read(anyID, value)
		}
		return nil
	})
	return ids
}

// readInteger reads a whole number that was validated before.
func readInteger(value jsontext.Value, to *int64) error {
	n, ok := schema.Int64(value)
	if !ok {
		return fmt.Errorf("%s is no whole number", value)
	}
	*to = n
	return nil
}

// readText reads a text of JSON without its quotes and escapes.
func readText(value jsontext.Value, to *string) error {
	b, err := jsontext.AppendUnquote(nil, value)
	*to = string(b)
	return err
}

// targetPath is the JSON pointer to a target, or to a member of it.
func targetPath(index int, member ...string) string {
	return strings.Join(append([]string{"/targets/" + strconv.Itoa(index)}, member...), "/")
}

// isPlainLine tells in most cases that a text is a fit line, without a path made for it.
func isPlainLine(text string, max int) bool {
	return len(text) <= max && strings.IndexFunc(text, schema.Unprintable) < 0
}
