package authoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"hub.internal/pkg/schema"
)

// segmentTargets reads the targets of a validated input where they are: snapshots are
// parts of raw, not copies.
func segmentTargets(raw json.RawMessage) SegmentTargets {
	return elements(raw, func(t *SegmentTarget, name string, value jsontext.Value) error {
		switch name {
		case "externalId":
			return whole(value, &t.ExternalID)
		case "snapshot":
			t.Snapshot = value
		}
		return nil
	})
}

// draftTargets reads the targets of a validated input; contexts are parts of raw.
func draftTargets(raw json.RawMessage) DraftTargets {
	return elements(raw, func(t *DraftTarget, name string, value jsontext.Value) error {
		switch name {
		case "externalId":
			return whole(value, &t.ExternalID)
		case "toEmail":
			return text(value, &t.ToEmail)
		case "toName":
			return text(value, &t.ToName)
		case "subject":
			return text(value, &t.Subject)
		case "body":
			return text(value, &t.Body)
		case "context":
			t.Context = value
		}
		return nil
	})
}

// elements yields the objects of a list, each made member by member.
func elements[T any](raw json.RawMessage, set func(*T, string, jsontext.Value) error) iter.Seq2[T, error] {
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

// partnerOf reads the member partner_id of a snapshot, which may be anything; source ids
// beyond 2^53 are texts.
func partnerOf(snapshot []byte) *int64 {
	dec := decoder(snapshot)
	if _, err := dec.ReadToken(); err != nil {
		return nil
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadValue()
		found := string(name) == `"partner_id"`
		value, valueErr := dec.ReadValue()
		if err != nil || valueErr != nil {
			return nil
		}
		if !found {
			continue
		}
		id, err := strconv.ParseInt(string(bytes.Trim(value, `"`)), 10, 64)
		if err != nil {
			return nil
		}
		return &id
	}
	return nil
}

func whole(value jsontext.Value, to *int64) error {
	n, ok := schema.Int64(value)
	if !ok {
		return fmt.Errorf("%s is no whole number", value)
	}
	*to = n
	return nil
}

func text(value jsontext.Value, to *string) error {
	b, err := jsontext.AppendUnquote(nil, value)
	*to = string(b)
	return err
}
