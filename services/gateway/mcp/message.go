package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"hub.internal/pkg/schema"
)

const (
	// maxBatch bounds how many messages a request may hold, in the revisions that know batches.
	maxBatch = 20
	// maxFields bounds the members of a message, and of its params.
	maxFields = 100
	// maxValues bounds the values of a message beside the arguments of a call, which the protocol makes things of.
	maxValues = 10_000
)

// callMethod is the method that calls a tool; all others read.
const callMethod = "tools/call"

// message is a message of JSON-RPC 2.0, its members as they were sent.
type message struct {
	raw []byte
	// top and params are the members of the message and of a call's params.
	top, params map[string]jsontext.Value
	// id is nil for a notification.
	id     jsontext.Value
	method string
	// version is that of JSON-RPC.
	version jsontext.Value
	// name, arguments and meta are those of a call; nil for none.
	name, arguments, meta jsontext.Value
	// isCall tells that it calls a tool.
	isCall bool
}

// parse reads the messages of a body. Their arguments are not looked into: the tool's schema judges them.
func (x *exchange) parse(body []byte) *jsonrpc.Error {
	values := []jsontext.Value{bytes.TrimSpace(body)}
	if x.batch = len(values[0]) > 0 && values[0][0] == '['; x.batch {
		var err error
		if values, err = elements(values[0], maxBatch); err != nil {
			return parseError(err)
		}
	}
	beside := 0
	for _, v := range values {
		m, err := read(v)
		if err != nil {
			return err
		}
		if beside += len(m.raw) - len(m.arguments); beside > maxEnvelope {
			return protocolError(jsonrpc.CodeInvalidRequest, fmt.Errorf("beside the arguments of calls there are more than %d bytes", maxEnvelope))
		}
		x.messages = append(x.messages, m)
		if f := m.paramsFault(); f != nil && !x.batch { // the others of a batch have their answers
			return f
		}
	}
	if slices.ContainsFunc(x.messages, func(m *message) bool { return m.method == "subscriptions/listen" }) {
		return protocolError(jsonrpc.CodeMethodNotFound, errors.New("subscriptions/listen is not served: no list here changes by itself"))
	}
	return nil
}

// protocolError is an error of the protocol with a code of JSON-RPC.
func protocolError(code int64, err error) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: err.Error()}
}

// limitError is what is more than a message, or a request, may hold.
type limitError string

// Error implements error.
func (e limitError) Error() string { return string(e) }

// parseError is the failure of a text that could not be taken apart.
func parseError(err error) *jsonrpc.Error {
	if many := limitError(""); errors.As(err, &many) {
		return protocolError(jsonrpc.CodeInvalidRequest, err)
	}
	return protocolError(jsonrpc.CodeParseError, err)
}

// read takes a message apart.
func read(v jsontext.Value) (*message, *jsonrpc.Error) {
	top, err := members(v)
	if err != nil {
		return nil, parseError(err)
	}
	m := &message{raw: v, top: top, id: top["id"], version: top["jsonrpc"]}
	if method := top["method"]; method != nil && json.Unmarshal(method, &m.method) != nil {
		return nil, protocolError(jsonrpc.CodeInvalidRequest, errors.New("method is no string"))
	}
	if m.id != nil && !isID(m.id) {
		return nil, protocolError(jsonrpc.CodeInvalidRequest, errors.New("id is no string and no whole number"))
	}
	if params := top["params"]; m.method == callMethod && params.Kind() == '{' {
		if m.params, err = members(params); err != nil {
			return nil, parseError(err)
		}
		m.isCall, m.name, m.arguments, m.meta = true, m.params["name"], m.params["arguments"], m.params["_meta"]
	}
	return m, nil
}

// errNoName is the failure of a call that names no tool.
var errNoName = errors.New("params.name is the name of a tool")

// paramsFault tells in words of the protocol what it would tell in those of its Go types.
func (m *message) paramsFault() *jsonrpc.Error {
	switch params := m.top["params"]; {
	case params != nil && params.Kind() != '{' && params.Kind() != 'n':
		return protocolError(jsonrpc.CodeInvalidParams, errors.New("params is an object"))
	case m.isCall && m.name != nil && m.name.Kind() != '"':
		return protocolError(jsonrpc.CodeInvalidParams, errNoName)
	}
	return nil
}

// given is a message as the protocol is given it: with words for its id, which is answered as it was sent and not read and written anew,
// and for the arguments of a call; or as it was sent where it has neither.
func (x *exchange) given(ctx context.Context, slot int) ([]byte, *jsonrpc.Error) {
	m := x.messages[slot]
	given, answered := m.raw, m.id != nil && m.method != ""
	if m.isCall || answered {
		b := append([]byte(`{"method":`), m.top["method"]...)
		b = append(b, field("jsonrpc", m.top)...)
		if answered {
			b = append(b, `,"id":"`+x.placeholder+"i"+strconv.Itoa(slot)+`"`...)
		} else {
			b = append(b, field("id", m.top)...)
		}
		if m.isCall {
			b = append(append(strconv.AppendInt(append(b, `,"params":{"arguments":{"slot":`...), int64(slot), 10), '}'), field("name", m.params)...)
			b = append(append(b, field("_meta", m.params)...), '}')
		} else {
			b = append(b, field("params", m.top)...)
		}
		given = append(b, '}')
	}
	if len(given) > 2*maxEnvelope { // parse has judged the size of all
		return given, nil
	}
	return given, within(ctx, given)
}

// within holds what is beside the arguments of a call to maxValues; that it is JSON, the protocol judges.
func within(ctx context.Context, value []byte) *jsonrpc.Error {
	if f := schema.Within(ctx, value, maxValues); f != nil && schema.ViolationsOf(f)[0].Rule != "json" {
		return protocolError(jsonrpc.CodeInvalidRequest, errors.New(f.Message))
	}
	return nil
}

// isID tells what the protocol takes for an id: a text, or a whole number however it is written.
func isID(id jsontext.Value) bool {
	switch id.Kind() {
	case '"':
		return utf8.Valid(id)
	case '0':
		_, whole := schema.Int64(id)
		return whole || !bytes.ContainsAny(id, ".eE")
	}
	return false
}

// field is a member of an object behind a comma; nothing where there is none.
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
		if len(all) == maxFields {
			return nil, limitError(fmt.Sprintf("a message has at most %d members", maxFields))
		}
		if all[name], err = next(d, object); err != nil {
			return nil, err
		}
	}
	return all, end(d)
}

// elements are those of an array, at most so many, as slices of it.
func elements(array jsontext.Value, most int) (all []jsontext.Value, err error) {
	d := decoder(array)
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != ']' {
		if len(all) == most {
			return nil, limitError(fmt.Sprintf("a batch has at most %d messages", most))
		}
		v, err := next(d, array)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, end(d)
}

// decoder reads a message as leniently as it can: what of it is a text or an object that nobody may send is refused by who
// needs it.
func decoder(b []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// next returns the next value as a slice of what is read, not a copy, with no room to append to.
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
