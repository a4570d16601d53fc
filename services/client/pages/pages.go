// Package pages reads a list of a tool's from its first page to its last. It refuses to know how a page is asked for, and how rows
// are written.
package pages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/jsontree"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/text"
	"hub.internal/services/client"
)

// defaultSize is how many rows a page has of a tool that does not say how many it can have.
const defaultSize = 100

// List is a tool that answers in pages: its input has limit and offset.
type List struct {
	Tool *client.Tool
	// Ask calls the tool.
	Ask func(ctx context.Context, input []byte) (*client.Answer, error)
	// Bound is how many rows are read at most.
	Bound int
}

// Page is an answer of the tool: its data, and the rows of the list in it.
type Page struct {
	Data json.RawMessage
	Rows []json.RawMessage
}

// Check returns E_VALIDATION for a tool without pages, which names those among others that have them.
func Check(t *client.Tool, all []*client.Tool) error {
	if isPaged(t) {
		return nil
	}
	names := ""
	for _, other := range all {
		if isPaged(other) {
			names += ", " + other.Name
		}
	}
	return fault.New(fault.Validation, "--all: %s answers in one piece; with pages there are%s", t.Name, names[min(1, len(names)):])
}

// isPaged tells whether the tool takes limit and offset, and changes nothing.
func isPaged(t *client.Tool) bool {
	limit, offset := t.Input.Properties.Field("limit"), t.Input.Properties.Field("offset")
	return !t.Write && limit != nil && offset != nil && limit.Type.Is("integer") && offset.Type.Is("integer")
}

// Each hands the pages to take, one after the other, from the offset of the input on. A page has the input's limit, or as many rows
// as the tool allows. When rows are left behind Bound, the error says so, and what was read has been taken.
func (l List) Each(ctx context.Context, input []byte, take func(Page) error) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(input, &fields); err != nil {
		return err
	}
	most, err := number("limit", json.RawMessage(l.Tool.Input.Properties.Field("limit").Maximum), defaultSize)
	if err != nil {
		most = defaultSize
	}
	size, err := number("limit", fields["limit"], most)
	if err != nil {
		return err
	}
	offset, err := number("offset", fields["offset"], 0)
	if err != nil {
		return err
	}
	size = max(1, size)
	for read := 0; ; {
		asked := min(size, l.Bound-read)
		fields["limit"], fields["offset"] = encoded(asked), encoded(offset)
		body, err := json.Marshal(fields)
		if err != nil {
			return err
		}
		a, err := l.Ask(ctx, body)
		if err != nil {
			return err
		}
		page, isMore, err := readPage(a.Body, asked)
		if err == nil {
			err = take(page)
		}
		if err != nil {
			return err
		}
		read, offset = read+len(page.Rows), offset+len(page.Rows)
		switch {
		case !isMore || len(page.Rows) == 0:
			return nil
		case read >= l.Bound:
			return fmt.Errorf("there are more than %d rows, and the rest was not read: --max-rows reads more, offset=%d reads on", read, offset)
		}
	}
}

// number is a whole number as the gateway takes it, in quotes or as 1e2 too, and what holds without one. It returns E_VALIDATION of
// anything else: what is left out would be read from another place than was asked for.
func number(name string, raw json.RawMessage, otherwise int) (int, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return otherwise, nil
	}
	var written json.Number
	n, isWhole := int64(0), json.Unmarshal(raw, &written) == nil && written != ""
	if isWhole {
		n, isWhole = schema.Int64([]byte(written))
	}
	if !isWhole {
		return 0, fault.New(fault.Validation, "--all: %s has to be a whole number, not %s", name, text.Shown(string(raw), 40))
	}
	return int(n), nil
}

// encoded is a number as JSON.
func encoded(n int) json.RawMessage { return fmt.Append(nil, n) }

// readPage reads an answer: its rows are the first list of objects, and there is more when it says so, or says nothing and is full.
func readPage(body []byte, asked int) (p Page, isMore bool, err error) {
	var envelope struct{ Data json.RawMessage }
	if err := json.Unmarshal(body, &envelope); err != nil {
		return p, false, fmt.Errorf("the gateway's answer cannot be read: %w", err)
	}
	members, err := jsontree.Members(envelope.Data)
	if err != nil {
		return p, false, errors.New("the gateway's answer has no data")
	}
	found, said := false, false
	for _, m := range members {
		var rows []json.RawMessage
		switch {
		case m.Name == "has_more":
			said, isMore = true, string(m.Value) == "true"
		case m.Name != "warnings" && !found && json.Unmarshal(m.Value, &rows) == nil && rows != nil:
			found, p.Rows = true, rows
		}
	}
	if !found {
		return p, false, errors.New("the gateway's answer has no list")
	}
	p.Data = envelope.Data
	return p, isMore || !said && len(p.Rows) >= asked, nil
}
