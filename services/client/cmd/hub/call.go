package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/services/client"
	"hub.internal/services/client/input"
	"hub.internal/services/client/output"
	"hub.internal/services/client/pages"
)

const callLong = `Call a tool. Fields are written by the tool's schema, which hub show TOOL prints:

  keyword=12              a text where the field is a text, a number where it is one
  statusCodes=1206,1209   a list, or statusCodes=1206 statusCodes=1209, or JSON
  targets=@targets.json   the content of a file: JSON for lists and objects, else
                          its text without the last line break
  keyword=@@home          a text that begins with @

A whole input is an object of JSON: '{"limit":5}', @input.json, or - for standard
input. Fields beside it are set in it. Without any, what is piped in is the input.

A write needs an Idempotency-Key: the same key again does not write again, but answers
what it answered. Without --idempotency-key one is made and printed on standard error.

Without -o, a terminal gets a table and a program JSON: the gateway's whole answer.
csv has a column for each field, and those within with a dot: contact.email. A text
that a spreadsheet would run as a formula gets an apostrophe in front; --exact has none.
The answer's warnings are on standard error, where they are not in the JSON.

--all reads a list to its end, page after page, and writes the rows as they come: as
JSON one to a line, or -o csv. It waits where the gateway says that it was asked too
often. --jq writes what an expression of jq makes of the answer, with --all of each row.`

const callExample = `  hub call search_brands keyword=kim hasVerifiedContact=true limit=5
  hub call search_brands limit=200 -o csv --columns brand_id,brand_name,contact.email
  hub call execute_read_sql sql=@report.sql -o csv > report.csv
  hub call search_brands --all --jq .brand_name
  echo '{"sql":"SELECT 1"}' | hub call execute_read_sql
  hub call queue_for_review draftId=7`

const (
	// maxInput is more than the gateway takes, in bytes: 32 MiB.
	maxInput = 40 << 20
	// catalogAge is how old a catalog may be by which fields are written; what it does not know is asked for again.
	catalogAge = 5 * time.Minute
	// stdinPatience is how long a tool that needs no input waits for one: a program may have been started with a pipe that nobody
	// writes to.
	stdinPatience = time.Second
)

// call is one call, as it was asked for.
// run goes through it in three steps: prepare, send, write.
type call struct {
	*hub
	// name is the tool's, key the Idempotency-Key or "", format one of asJSON, asTable and asCSV.
	name, key, format string
	choice            output.Choice
	exact             bool
	// all reads every page, maxRows rows at most; jq is an expression or "", and filter what it was compiled to.
	all     bool
	maxRows int
	jq      string
	filter  *output.Filter

	// What run finds out before the call: the client with its key, where the key was found, and standard input, which
	// is read at most once however many arguments name it.
	client  *client.Client
	keyFrom string
	stdin   func() ([]byte, error)
}

// callCommand is hub call.
// The tool's own fields are arguments and no flags, since no release of the client knows them.
func (h *hub) callCommand() *cobra.Command {
	o := &call{hub: h}
	cmd := &cobra.Command{Use: "call TOOL [field=value ...] [JSON]", Short: "Call a tool", Args: cobra.MinimumNArgs(1),
		Long: callLong, Example: callExample, ValidArgsFunction: h.completeCall}
	h.formatFlag(cmd, &o.format, "table on a terminal, else json")
	f := cmd.Flags()
	f.StringVar(&o.key, "idempotency-key", "", "the Idempotency-Key of a write (default: a new one)")
	// Columns keep the order in which they are named.
	f.StringSliceVar(&o.choice.Columns, "columns", nil, "the columns of a table or of csv, with commas: brand_id,contact.email")
	f.StringVar(&o.choice.List, "list", "", "the list of an answer that has several, for a table or csv")
	f.BoolVar(&o.all, "all", false, "read a list to its end: each row is a line of JSON, or of -o csv")
	f.IntVar(&o.maxRows, "max-rows", 100_000, "how many rows --all reads at most")
	f.StringVar(&o.jq, "jq", "", "write what this expression of jq makes of the answer, with --all of each row")
	f.BoolVar(&o.exact, "exact", false, "csv: texts as they are, also those that a spreadsheet would run")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.name = args[0]
		return o.run(cmd.Context(), args[1:])
	}
	return cmd
}

// run checks the flags before anything is sent, makes the input, calls the tool and writes its answer.
// The catalog is asked for first, within --timeout; the call has a --timeout of its own.
func (o *call) run(ctx context.Context, args []string) (err error) {
	if err = o.checkWays(); err != nil {
		return err
	}
	if o.format == asJSON && (len(o.choice.Columns) > 0 || o.choice.List != "") {
		return misused("--columns and --list are for -o table and -o csv")
	}
	// The gateway has the same rule: a key that it would refuse is not worth a request.
	if strings.ContainsFunc(o.key, func(r rune) bool { return r < ' ' || r > '~' }) || len(o.key) > 255 {
		return misused("--idempotency-key: a key is 1 to 255 printable characters of ASCII")
	}
	if o.client, o.keyFrom, err = o.connect(); err != nil {
		return err
	}
	var t *client.Tool
	var body json.RawMessage
	err = o.waiting(ctx, "what "+o.name+" takes", func(ctx context.Context) error {
		o.stdin = sync.OnceValues(func() ([]byte, error) { return readUntilDone(ctx, o.readInput) })
		t, body, err = o.prepare(ctx, args)
		return err
	})
	if err != nil {
		return err
	}
	if o.all {
		return o.everything(ctx, t, body)
	}
	a, err := o.send(ctx, t, body)
	if err != nil {
		return err
	}
	if a.Replayed {
		o.note("note: this Idempotency-Key was used before; nothing was written again, and this is what was answered then")
	}
	if o.filter != nil {
		return o.filter.Write(ctx, o.out, o.screen, a.Body)
	}
	return o.write(a.Body)
}

// checkWays judges the flags that say how an answer is written.
// It sets the format and the filter. Contradictions are E_VALIDATION: nobody should wait for an answer that cannot be
// written.
func (o *call) checkWays() (err error) {
	switch {
	case o.jq != "" && o.format != "" && o.format != asJSON:
		return misused("--jq is for -o json")
	case o.all && o.format == asTable:
		return misused("--all writes rows as they come: -o json has one to a line, -o csv is for spreadsheets")
	case o.maxRows < 1:
		return misused("--max-rows is %d: it is 1 at least", o.maxRows)
	case o.format == "" && (o.jq != "" || o.all):
		o.format = asJSON
	}
	if o.filter, err = filterOf(o.jq); err != nil {
		return err
	}
	o.format, err = o.checkFormat(o.format, asJSON)
	return err
}

// filterOf compiles the expression of --jq; nil for none.
func filterOf(expression string) (*output.Filter, error) {
	if expression == "" {
		return nil, nil
	}
	return output.NewFilter(expression)
}

// longestPause is how long --all waits at most where it was told to.
const longestPause = 2 * time.Minute

// everything calls the tool for one page after the other, and writes the rows as they come.
// It pages by offset: a row that comes or goes meanwhile may be there twice, or be missing. Rows that were written before a
// failure stay written, and the exit code tells of the failure.
func (o *call) everything(ctx context.Context, t *client.Tool, body []byte) error {
	kept, err := o.client.Catalog(ctx, o.cache(), catalogAge)
	if err == nil {
		err = pages.Check(t, kept.Tools)
	}
	if err != nil {
		return err
	}
	var read atomic.Int64
	// Rows on a screen tell by themselves how far it is.
	if o.notes.Width > 0 && o.screen.Width == 0 {
		defer output.Progress(o.err, o.notes, func() string { return fmt.Sprintf("%s: %d rows", o.name, read.Load()) })()
	}
	var list output.Pages
	// Each page may have the same warnings: each text is told once.
	told, formulas := map[string]bool{}, 0
	err = pages.List{Tool: t, Bound: o.maxRows, Ask: func(ctx context.Context, input []byte) (*client.Answer, error) {
		return o.patiently(ctx, t, input)
	}}.Each(ctx, body, func(p pages.Page) error {
		n, err := o.writePage(ctx, &list, p, told)
		formulas += n
		read.Add(int64(len(p.Rows)))
		return err
	})
	o.remarks(&output.Answer{}, nil, formulas)
	if len(list.Left) > 0 {
		o.note("note: the first page has no %s, so it is left out; --columns chooses", strings.Join(list.Left, ", "))
	}
	return err
}

// patiently calls the tool, and again after the time that the gateway names when it was asked too often.
// It repeats E_RATE_LIMIT alone, for as long as ctx lasts: a longer wait than longestPause is for a person to decide on.
func (o *call) patiently(ctx context.Context, t *client.Tool, input []byte) (*client.Answer, error) {
	for {
		a, err := o.send(ctx, t, input)
		var failure *client.Failure
		if !errors.As(err, &failure) || failure.Code != fault.RateLimit || failure.RetryAfter <= 0 || failure.RetryAfter > longestPause {
			return a, err
		}
		select {
		case <-time.After(failure.RetryAfter):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// writePage writes the rows of a page, and each warning once; it returns how many texts got an apostrophe.
func (o *call) writePage(ctx context.Context, list *output.Pages, p pages.Page, told map[string]bool) (formulas int, err error) {
	a, err := output.Read(p.Data)
	if err != nil {
		return 0, err
	}
	for _, warning := range a.Warnings {
		if !told[warning] {
			told[warning] = true
			o.note("warning: %s", warning)
		}
	}
	if o.format == asCSV {
		return list.CSV(a, o.out, o.choice, o.exact)
	}
	for _, row := range p.Rows {
		if o.filter != nil {
			err = o.filter.Write(ctx, o.out, o.screen, row)
		} else {
			err = output.Line(o.out, row)
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// send calls the tool; a write has an Idempotency-Key, which is printed before it can be needed.
// The key is printed ahead of the request, because an answer that never comes leaves nothing else to try again with.
// Any error of it is an exchangeError, by which report knows the hint to give.
func (o *call) send(ctx context.Context, t *client.Tool, body []byte) (a *client.Answer, err error) {
	if t.Write && o.key == "" {
		o.key = ulid.Make().String()
		o.note("Idempotency-Key: %s", o.key)
	}
	r := client.Request{Method: http.MethodPost, Path: client.ToolPath(o.name), Body: body, IdempotencyKey: o.key}
	err = o.waiting(ctx, o.name, func(ctx context.Context) error {
		a, err = o.client.Do(ctx, r)
		return err
	})
	if err != nil {
		failed := &exchangeError{error: err, tool: o.name, keyFrom: o.keyFrom}
		if t.Write {
			failed.idempotencyKey = o.key
		}
		return nil, failed
	}
	return a, nil
}

// prepare makes the input by the tool's schema: as it was a moment ago, and when that does not do, as it is.
// A kept catalog may lack a tool or a field of a later release: only its refusal leads to a question, so that a call costs
// one exchange while a catalog is kept.
func (o *call) prepare(ctx context.Context, args []string) (*client.Tool, json.RawMessage, error) {
	// Two rounds at most: all.Asked ends the loop when the gateway itself has just said what there is.
	for age := catalogAge; ; age = 0 {
		all, err := o.client.Catalog(ctx, o.cache(), age)
		if err != nil {
			return nil, nil, &exchangeError{error: err, keyFrom: o.keyFrom}
		}
		t := all.Tool(o.name)
		if t == nil {
			err = o.unknown(all)
		} else {
			var body json.RawMessage
			if body, err = o.input(ctx, t, args); err == nil {
				return t, body, nil
			}
		}
		// An error in a file or on standard input is no matter of the catalog: a newer one would not mend it.
		if all.Asked || t != nil && !fault.Is(err, fault.Validation) {
			return nil, nil, err
		}
	}
}

// unknown is the gateway's own refusal of a tool that does not exist, before anything was sent.
// It is E_NOT_FOUND, and names the tool that may have been meant by edit distance (schema.Nearest).
func (o *call) unknown(all *client.Catalog) error {
	meant := ""
	if nearest := schema.Nearest(o.name, all.Names()); nearest != "" {
		meant = fmt.Sprintf("did you mean %s? ", nearest)
	}
	return fault.New(fault.NotFound, "there is no tool %q: %shub tools lists them", o.name, meant)
}

// input makes the tool's input of the arguments, or of what is piped in when there are none.
// Types are the schema's: limit=5 is a number where the field is one (package input).
func (o *call) input(ctx context.Context, t *client.Tool, args []string) (json.RawMessage, error) {
	if len(args) == 0 && o.piped {
		return o.pipedIn(ctx, t)
	}
	return input.Make(t, args, input.Files{Stdin: o.stdin, Read: readFile})
}

// pipedIn is the input of a call without arguments whose standard input is a pipe or a file. Nobody may ever write to such a
// pipe: a tool that needs no input waits for it a moment.
// Where the tool needs an input, nothing in time is E_VALIDATION.
func (o *call) pipedIn(ctx context.Context, t *client.Tool) (json.RawMessage, error) {
	wait, stop := ctx, context.CancelFunc(func() {})
	if len(t.Input.Required) == 0 {
		wait, stop = context.WithTimeout(ctx, stdinPatience)
	}
	defer stop()
	b, err := readUntilDone(wait, o.stdin)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		o.note("note: nothing came on standard input; %s is called without fields (- waits for it)", t.Name)
		b = nil
	case errors.Is(err, context.DeadlineExceeded):
		return nil, misused("%s needs %s, and nothing came on standard input in time", t.Name, strings.Join(t.Input.Required, ", "))
	case err != nil:
		return nil, err
	}
	if len(strings.TrimSpace(string(b))) == 0 {
		return input.Make(t, nil, input.Files{})
	}
	return input.Object(b, "standard input")
}

// readInput reads standard input to its end.
// It is called through o.stdin, which keeps what was read.
func (o *call) readInput() ([]byte, error) { return readBounded(o.in) }

// readFile reads a file that an argument names with @.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBounded(f)
}

// readBounded reads to the end, and refuses what is longer than maxInput instead of filling the memory.
// A longer input is E_VALIDATION.
func readBounded(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err == nil && len(b) > maxInput {
		return nil, misused("the input is longer than the %d MiB that any tool takes", maxInput>>20)
	}
	return b, err
}

// write writes the answer as it was asked for.
// JSON is the whole envelope; a table and csv are made of its data alone.
func (o *call) write(body []byte) error {
	if o.format == asJSON {
		return output.JSON(o.out, body)
	}
	var envelope struct{ Data json.RawMessage }
	if err := json.Unmarshal(body, &envelope); err != nil || envelope.Data == nil {
		return errors.New("the gateway's answer has no data; -o json shows it")
	}
	a, err := output.Read(envelope.Data)
	if err != nil {
		return err
	}
	var left []string
	formulas := 0
	if o.format == asCSV {
		formulas, err = a.CSV(o.out, o.choice, o.exact)
	} else {
		left, err = a.Table(o.out, o.screen, o.choice)
	}
	if err != nil {
		return err
	}
	o.remarks(a, left, formulas)
	return nil
}

// remarks says on standard error what the rows do not.
// They never go to standard output: what reads the rows must not stumble over them.
func (o *call) remarks(a *output.Answer, left []string, formulas int) {
	for _, warning := range a.Warnings {
		o.note("warning: %s", warning)
	}
	if partial := a.Partial(); partial != "" && (o.format == asCSV || o.screen.Width == 0) {
		o.note("note: %s", partial)
	}
	if formulas > 0 {
		o.note("note: texts that a spreadsheet would run as formulas (%d) have an apostrophe in front; --exact has none", formulas)
	}
	if len(left) > 0 {
		o.note("note: no room for %s; --columns chooses, -o json and -o csv have all", strings.Join(left, ", "))
	}
}
