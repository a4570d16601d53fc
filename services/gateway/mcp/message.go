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

// parse reads the messages of a body. The arguments of calls are not looked into: the tool's schema judges them.
func (x *exchange) parse(body []byte) *jsonrpc.Error {
	body = bytes.TrimSpace(body)
	r := &reader{Decoder: decoder(body), of: body}
	if x.batch = r.PeekKind() == '['; x.batch {
		if err := r.batch(x); err != nil {
			return err
		}
	} else if err := r.message(x); err != nil {
		return err
	}
	if _, err := r.ReadToken(); !errors.Is(err, io.EOF) {
		return parseError(errors.New("something follows the end"))
	}
	if !x.batch { // the others of a batch have their answers
		if f := x.messages[0].paramsFault(); f != nil {
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

// reader takes a body apart. It stops where there are more than maxEnvelope bytes beside the arguments of calls, so that what a body
// costs is in proportion to these and to the bounds of the tools.
type reader struct {
	*jsontext.Decoder
	of []byte
	// arguments is how much of what was read are arguments, in bytes.
	arguments int64
}

// batch takes the messages of an array apart, at most maxBatch.
func (r *reader) batch(x *exchange) *jsonrpc.Error {
	_, _ = r.ReadToken() // which has been seen, as has the last
	for r.PeekKind() != ']' {
		if len(x.messages) == maxBatch {
			return parseError(limitError(fmt.Sprintf("a batch has at most %d messages", maxBatch)))
		}
		if err := r.message(x); err != nil {
			return err
		}
	}
	_, _ = r.ReadToken()
	return nil
}

// message takes the next message of a request apart.
func (r *reader) message(x *exchange) *jsonrpc.Error {
	m, before := &message{}, r.arguments
	var unfit error
	params := func(name string) (v jsontext.Value, err error) {
		if name != "params" || r.PeekKind() != '{' {
			return r.value()
		}
		v, m.params, unfit, err = r.object(r.param)
		return v, err
	}
	raw, top, twice, err := r.object(params)
	if err = cmp.Or(err, twice); err != nil {
		return parseError(err)
	}
	m.raw, m.top, m.id, m.version = raw, top, top["id"], top["jsonrpc"]
	if method := top["method"]; method != nil && json.Unmarshal(method, &m.method) != nil {
		return protocolError(jsonrpc.CodeInvalidRequest, errors.New("method is no string"))
	}
	if m.id != nil && !isID(m.id) {
		return protocolError(jsonrpc.CodeInvalidRequest, errors.New("id is no string and no whole number"))
	}
	if m.isCall = m.method == callMethod && m.params != nil; m.isCall {
		m.name, m.arguments, m.meta = m.params["name"], m.params["arguments"], m.params["_meta"]
	} else {
		unfit, r.arguments = nil, before // the protocol is given all of it
	}
	if err := cmp.Or(unfit, r.within()); err != nil {
		return parseError(err)
	}
	x.messages = append(x.messages, m)
	return nil
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

// object reads an object: its members as value reads each, by name, as slices of the body. A name may be there once, and there are at
// most maxFields: unfit is what is wrong with that; what is further inside is not judged.
func (r *reader) object(value func(name string) (jsontext.Value, error)) (
	raw jsontext.Value, members map[string]jsontext.Value, unfit, err error,
) {
	if t, err := r.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, nil, nil, cmp.Or(err, errors.New("a message is an object"))
	}
	start := r.InputOffset() - 1
	members = map[string]jsontext.Value{}
	for r.PeekKind() != '}' {
		t, err := r.ReadToken()
		if err != nil {
			return nil, nil, nil, err
		}
		name := t.String()
		v, err := value(name)
		if err = cmp.Or(err, r.within()); err != nil {
			return nil, nil, nil, err
		}
		if _, twice := members[name]; twice {
			unfit = cmp.Or(unfit, fmt.Errorf("%.40q is there twice", name))
		} else if len(members) == maxFields {
			unfit = limitError(fmt.Sprintf("a message has at most %d members", maxFields))
		} else {
			members[name] = v
		}
	}
	_, err = r.ReadToken()
	return r.since(start), members, unfit, err
}

// param reads a member of params: arguments in one piece.
func (r *reader) param(name string) (jsontext.Value, error) {
	if name != "arguments" {
		return r.value()
	}
	v, err := r.piece()
	r.arguments += int64(len(v))
	return v, err
}

// value reads the next value, and of one that holds others no more than there may be.
func (r *reader) value() (jsontext.Value, error) {
	if kind := r.PeekKind(); kind != '{' && kind != '[' {
		return r.piece()
	}
	_, err := r.ReadToken()
	start, inside := r.InputOffset()-1, r.StackDepth()
	for err == nil && r.StackDepth() >= inside {
		if _, err = r.ReadToken(); err == nil {
			err = r.within()
		}
	}
	return r.since(start), err
}

// piece reads the next value, whatever it holds.
func (r *reader) piece() (jsontext.Value, error) {
	v, err := r.ReadValue()
	return r.since(r.InputOffset() - int64(len(v))), err
}

// since is what was read from there on, a slice of the body with no room to append to.
func (r *reader) since(start int64) jsontext.Value {
	end := r.InputOffset()
	return r.of[start:end:end]
}

// within is the failure of a body that has too much beside the arguments of calls.
func (r *reader) within() error {
	if r.InputOffset()-r.arguments > maxEnvelope {
		return limitError(fmt.Sprintf("beside the arguments of calls there are more than %d bytes", maxEnvelope))
	}
	return nil
}

// decoder reads a message as leniently as it can: what of it is a text or an object that nobody may send is refused by who
// needs it.
func decoder(b []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}
