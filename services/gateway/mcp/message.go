package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxBatch bounds how many messages a request may hold, in the revisions that know batches.
const maxBatch = 20

const callMethod = "tools/call"

// message is a message of JSON-RPC 2.0, its members as they were sent.
type message struct {
	raw []byte
	// id is nil for a notification.
	id     jsontext.Value
	method string
	// version is that of JSON-RPC.
	version jsontext.Value
	// name, arguments and meta are those of a call; nil for none.
	name, arguments, meta jsontext.Value
	// small is the message with a word for its arguments; nil for any other than a call.
	small []byte
}

// parse reads the messages of a body. Their arguments are not looked into: the tool's schema judges them.
func (x *exchange) parse(body []byte) *jsonrpc.Error {
	values := []jsontext.Value{bytes.TrimSpace(body)}
	if x.batch = len(values[0]) > 0 && values[0][0] == '['; x.batch {
		var err error
		if values, err = elements(values[0]); err != nil {
			return broken(jsonrpc.CodeParseError, err)
		}
		if len(values) > maxBatch {
			return broken(jsonrpc.CodeInvalidRequest, fmt.Errorf("a batch has at most %d messages", maxBatch))
		}
	}
	beside := 0
	for i, v := range values {
		m, err := readMessage(v, i)
		if err != nil {
			return err
		}
		if beside += len(m.raw) - len(m.arguments); beside > maxEnvelope {
			return broken(jsonrpc.CodeInvalidRequest, fmt.Errorf("beside the arguments of calls there are more than %d bytes", maxEnvelope))
		}
		x.messages = append(x.messages, m)
	}
	if slices.ContainsFunc(x.messages, func(m *message) bool { return m.method == "subscriptions/listen" }) {
		return broken(jsonrpc.CodeMethodNotFound, errors.New("subscriptions/listen is not served: no list here changes by itself"))
	}
	return nil
}

func broken(code int64, err error) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: err.Error()}
}

func readMessage(v jsontext.Value, slot int) (*message, *jsonrpc.Error) {
	top, err := members(v)
	if err != nil {
		return nil, broken(jsonrpc.CodeParseError, err)
	}
	m := &message{raw: v, id: top["id"], version: top["jsonrpc"]}
	if method := top["method"]; method != nil && json.Unmarshal(method, &m.method) != nil {
		return nil, broken(jsonrpc.CodeInvalidRequest, errors.New("method is no string"))
	}
	if m.method != callMethod || top["params"].Kind() != '{' {
		return m, nil
	}
	params, err := members(top["params"])
	if err != nil {
		return nil, broken(jsonrpc.CodeParseError, err)
	}
	m.name, m.arguments, m.meta = params["name"], params["arguments"], params["_meta"]
	b := append(bytes.Clone([]byte(`{"method":"`+callMethod+`"`)), field("jsonrpc", top)...)
	b = append(append(b, field("id", top)...), `,"params":{"arguments":{"slot":`...)
	b = append(strconv.AppendInt(b, int64(slot), 10), '}')
	b = append(append(b, field("name", params)...), field("_meta", params)...)
	m.small = append(b, "}}"...)
	return m, nil
}

func field(name string, of map[string]jsontext.Value) []byte {
	v := of[name]
	if v == nil {
		return nil
	}
	return slices.Concat([]byte(`,"`+name+`":`), v)
}

// members are those of an object, as slices of it. A name may be there once; what is further inside is not judged.
func members(object jsontext.Value) (map[string]jsontext.Value, error) {
	d := decoder(object)
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, cmp.Or(err, errors.New("a message is an object"))
	}
	all := map[string]jsontext.Value{}
	for d.PeekKind() != '}' {
		t, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		name := t.String()
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("%.40q is there twice", name)
		}
		if all[name], err = next(d, object); err != nil {
			return nil, err
		}
	}
	return all, end(d)
}

// elements are those of an array, as slices of it.
func elements(array jsontext.Value) (all []jsontext.Value, err error) {
	d := decoder(array)
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != ']' {
		v, err := next(d, array)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, end(d)
}

func decoder(b []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func next(d *jsontext.Decoder, of []byte) (jsontext.Value, error) {
	v, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	end := d.InputOffset()
	return of[end-int64(len(v)) : end : end], nil
}

// end reads the closing token, behind which there is nothing.
func end(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the end")
	}
	return nil
}
