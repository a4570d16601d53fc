package schema

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"hub.internal/pkg/fault"
)

// What JSON may be made of beside its bytes. A value of a few bytes costs whoever builds something of it a hundred, and a name more
// than that, so each is counted while it is read, before anything is made of it: what a body costs stays in proportion to its bound in
// bytes. The largest calls of real use fit well: 50,000 rows of a search with their targets are 900,000 values of 2,097,152.
const (
	// MaxMembers is how many members an object may have.
	MaxMembers = 10_000
	// MaxDepth is how many lists and objects may stand in one another: whoever sorts the members of an object moves all that is in it.
	MaxDepth = 64
	// fewestValues is what every body may hold, and bytesPerValue what a value has to itself of a large one's bound.
	fewestValues, bytesPerValue = 100_000, 16
	// stepsPerLook is how many values are read before it is asked again whether somebody still waits for the answer.
	stepsPerLook = 1024
)

// MaxValues is how many values a body that is bounded to so many bytes may hold: objects, lists, texts, numbers, true, false and
// null, each counted wherever it stands; the names of members are none.
func MaxValues(maxBody int64) int { return int(max(fewestValues, maxBody/bytesPerValue)) }

// Within tells whether a JSON value keeps to MaxMembers, MaxDepth and this many values. It is for text that somebody else judges
// afterwards: names that are there twice and broken UTF-8 are not looked for. It returns E_VALIDATION with the violation, or what has
// ended ctx.
func Within(ctx context.Context, text []byte, values int) *fault.Error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	m := budget{ctx: ctx, dec: dec, left: values, most: values}
	err := m.skip()
	if err == nil {
		if _, end := dec.ReadToken(); !errors.Is(end, io.EOF) {
			err = &jsontext.SyntacticError{ByteOffset: dec.InputOffset(), Err: errTrailing}
		}
	}
	return unreadable(err, len(text))
}

// budget counts what a decoder reads.
type budget struct {
	ctx        context.Context
	dec        *jsontext.Decoder
	left, most int
	names      *names // nil where a name that is there twice does not matter
}

// boundExceeded is the error of a bound.
type boundExceeded struct{ Violation }

func (b boundExceeded) Error() string { return b.Path + " " + b.Message }

// count counts a value. Its error is boundExceeded, or of the context.
func (m *budget) count() error {
	if m.left--; m.left < 0 {
		return boundExceeded{Violation{"", "maxValues", "must hold at most " + strconv.Itoa(m.most) +
			" values (each object, list, text, number, true, false and null counts): send less in one call"}}
	}
	if m.left%stepsPerLook == 0 {
		return m.ctx.Err()
	}
	return nil
}

// open reads the beginning of a list or an object.
func (m *budget) open() error {
	token, err := m.dec.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() == '{' {
		m.names.begin()
	}
	if err := m.count(); err != nil {
		return err
	}
	if m.dec.StackDepth() > MaxDepth {
		return boundExceeded{Violation{string(m.dec.StackPointer()), "maxDepth", "must be nested at most " + strconv.Itoa(MaxDepth) + " deep"}}
	}
	return nil
}

// named judges the object of which a name has just been read, in its quotes.
func (m *budget) named(quoted []byte) error {
	if err := m.names.add(quoted); err != nil {
		return &jsontext.SyntacticError{ByteOffset: m.dec.InputOffset() - int64(len(quoted)), JSONPointer: m.dec.StackPointer(), Err: err}
	}
	if _, n := m.dec.StackIndex(m.dec.StackDepth()); n > 2*MaxMembers {
		return boundExceeded{Violation{string(m.dec.StackPointer().Parent()), "maxProperties", "must have at most " + strconv.Itoa(MaxMembers) +
			" members"}}
	}
	return nil
}

// scalar reads a value that is neither a list nor an object.
func (m *budget) scalar() (jsontext.Value, error) {
	if err := m.count(); err != nil {
		return nil, err
	}
	return m.dec.ReadValue()
}

// close reads the end of a list or an object.
func (m *budget) close() error {
	token, err := m.dec.ReadToken()
	if err == nil && token.Kind() == '}' {
		err = m.names.end()
	}
	return err
}

// skip reads a value and all that is in it.
func (m *budget) skip() error {
	for depth := m.dec.StackDepth(); ; {
		var err error
		switch m.dec.PeekKind() {
		case '}', ']':
			err = m.close()
		case '{', '[':
			err = m.open()
		default:
			var raw jsontext.Value
			if raw, err = m.dec.ReadValue(); err != nil {
				return err
			}
			if container, n := m.dec.StackIndex(m.dec.StackDepth()); container == '{' && n%2 == 1 {
				err = m.named(raw)
			} else {
				err = m.count()
			}
		}
		if err != nil || m.dec.StackDepth() <= depth {
			return err
		}
	}
}
