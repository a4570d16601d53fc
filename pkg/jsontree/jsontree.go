// Package jsontree reads JSON in the order in which it is written, which a map forgets. It refuses to know what the members mean.
package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Member is a member of an object.
type Member struct {
	// Name is without its escapes.
	Name string
	// Value is as it is written.
	Value json.RawMessage
}

// Members are those of an object, in its order; a name that is there twice is two members. The error is for what is no object, or no
// JSON, and for what follows it. It reads each byte once, and leaves the values as they are.
func Members(object []byte) (all []Member, err error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.Join(errors.New("no object of JSON"), err)
	}
	for d.More() {
		var m Member
		name, err := d.Token()
		if err == nil {
			m.Name, _ = name.(string)
			err = d.Decode(&m.Value)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return all, nil
}
