// Package evidence reads what an agent gives beside its targets: the snapshot of a segment's target, which is a row as a search
// tool answered it, and the context of a draft's. It guesses whom they are of, and refuses nothing.
package evidence

import (
	"bytes"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// kinds are what a row can be of, as segments name them.
var kinds = []string{"partner", "brand", "campaign"}

// Decoder reads JSON that was validated, so that nothing has to be refused again. Over a
// bytes.Buffer it reads the text itself, and its values stay valid.
func Decoder(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
}

// Members calls set with each member of an object, in its order. The value is a part of the text, not a copy.
func Members[T any](dec *jsontext.Decoder, element *T, set func(*T, string, jsontext.Value) error) error {
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

// PartnerOf reads the first member partner_id of a snapshot, which may be anything; nil for what is no id.
func PartnerOf(snapshot []byte) (partner *int64) {
	_ = Members(Decoder(snapshot), &partner, func(partner **int64, name string, value jsontext.Value) error {
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

// Is tells in most cases, without reading it, that a snapshot is the row of its target: answers of search tools have
// the id so.
func Is(kind string, id int64, snapshot []byte) bool {
	_, after, found := bytes.Cut(snapshot, []byte(`"`+kind+`_id":`))
	if !found {
		return false
	}
	end := bytes.IndexAny(after, ",}")
	if end < 0 {
		return false
	}
	own, ok := sourceID(after[:end])
	return ok && own == id
}

// AnyID is the name under which IDs has the member id, which is that of whatever the row is of.
const AnyID = "id"

// IDs are the ids that a snapshot has of itself, by kind: members such as brand_id or brandId, and those of a member
// brand, as get_brand answers it.
func IDs(snapshot []byte) map[string]int64 {
	ids := map[string]int64{}
	read := func(kind string, value jsontext.Value) {
		if id, ok := sourceID(value); ok {
			ids[kind] = id
		}
	}
	_ = Members(Decoder(snapshot), &ids, func(_ *map[string]int64, name string, value jsontext.Value) error {
		for _, kind := range kinds {
			switch {
			case name == kind+"_id", name == kind+"Id":
				read(kind, value)
			case name == kind && value.Kind() == '{':
				_ = Members(Decoder(value), &ids, func(_ *map[string]int64, name string, value jsontext.Value) error {
					if _, known := ids[kind]; !known && name == kind+"_id" {
						read(kind, value)
					}
					return nil
				})
			}
		}
		if name == AnyID {
			read(AnyID, value)
		}
		return nil
	})
	return ids
}

// Map are the members of an object; of none, nothing.
func Map(object []byte) (map[string]jsontext.Value, error) {
	all := map[string]jsontext.Value{}
	if object == nil {
		return all, nil
	}
	return all, Members(Decoder(object), &all, func(all *map[string]jsontext.Value, name string, value jsontext.Value) error {
		(*all)[name] = value
		return nil
	})
}
