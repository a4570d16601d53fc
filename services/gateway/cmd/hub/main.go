// Command hub is the client: it lists the tools of a gateway and calls them.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"
)

func main() {
	if err := command(os.Getenv, os.Stdin, os.Stdout).ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "hub:", err)
		os.Exit(1)
	}
}

func command(getenv func(string) string, in io.Reader, out io.Writer) *cobra.Command {
	c := &client{getenv: getenv, out: out}
	root := &cobra.Command{
		Use: "hub", Short: "The client of a Hub gateway", SilenceUsage: true, SilenceErrors: true,
		Long: "hub lists and calls the tools of a Hub gateway. HUB_URL names the gateway, HUB_API_KEY holds the key. " +
			"hub pay makes orders as a Connected App.",
	}
	var key string
	call := &cobra.Command{
		Use: "call TOOL [name=value ...]", Short: "Call a tool", Args: cobra.MinimumNArgs(1),
		Long: "Call a tool. A value that is JSON is sent as JSON, any other as a string: limit=5 hasVerifiedContact=true keyword=kim.\n" +
			"A single - reads the whole input from standard input.",
		Example: "  hub call search_brands keyword=kim hasVerifiedContact=true limit=5\n  echo '{\"sql\":\"SELECT 1\"}' | hub call " +
			"execute_read_sql -",
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := input(args[1:], in)
			if err != nil {
				return err
			}
			return c.call(cmd.Context(), args[0], body, key)
		},
	}
	call.Flags().StringVar(&key, "idempotency-key", "", "the Idempotency-Key of a write (default: a new one)")
	root.AddCommand(
		&cobra.Command{Use: "tools", Short: "List the tools", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return c.tools(cmd.Context()) }},
		&cobra.Command{Use: "show TOOL", Short: "Show everything about one tool", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return c.print(cmd.Context(), http.MethodGet, "/api/tools/"+args[0]+"/detail", nil, "")
			}},
		call, pay(c), mcp(c, in))
	root.SetOut(out)
	return root
}

// input makes the JSON object of name=value arguments.
func input(args []string, in io.Reader) ([]byte, error) {
	if len(args) == 1 && args[0] == "-" {
		return io.ReadAll(in)
	}
	object := make(map[string]json.RawMessage, len(args))
	for _, arg := range args {
		name, value, found := strings.Cut(arg, "=")
		if !found || name == "" {
			return nil, fmt.Errorf("%q is not name=value", arg)
		}
		if !json.Valid([]byte(value)) {
			text, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			value = string(text)
		}
		object[name] = json.RawMessage(value)
	}
	return json.Marshal(object)
}

type client struct {
	getenv func(string) string
	out    io.Writer
}

func (c *client) tools(ctx context.Context) error {
	body, err := c.send(ctx, http.MethodGet, "/api/tools", nil, "")
	if err != nil {
		return err
	}
	var answer struct {
		Data struct {
			Tools []struct {
				Name, Category, Description, Scope string
				Allowed                            bool
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("the gateway's answer cannot be read: %w", err)
	}
	w := tabwriter.NewWriter(c.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "TOOL\tCATEGORY\tSCOPE\tALLOWED\tDESCRIPTION")
	for _, t := range answer.Data.Tools {
		allowed := "yes"
		if !t.Allowed {
			allowed = "no"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", t.Name, t.Category, t.Scope, allowed, firstSentence(t.Description))
	}
	return w.Flush()
}

func firstSentence(s string) string {
	for i := range len(s) {
		// "WITH ... SELECT" is no end of a sentence.
		if strings.HasPrefix(s[i:], ". ") && !strings.HasSuffix(s[:i], ".") {
			return s[:i+1]
		}
	}
	return s
}

func (c *client) call(ctx context.Context, name string, body []byte, key string) error {
	if key == "" {
		key = ulid.Make().String()
	}
	return c.print(ctx, http.MethodPost, "/api/tools/"+name, body, key)
}

func (c *client) print(ctx context.Context, method, path string, body []byte, key string) error {
	answer, err := c.send(ctx, method, path, body, key)
	if err != nil {
		return err
	}
	return c.pretty(answer)
}

func (c *client) pretty(answer []byte) error {
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, answer, "", "  "); err != nil {
		return fmt.Errorf("the gateway's answer cannot be read: %w", err)
	}
	_, err := fmt.Fprintln(c.out, pretty.String())
	return err
}

// send is an exchange with the API key.
func (c *client) send(ctx context.Context, method, path string, body []byte, key string) ([]byte, error) {
	apiKey := c.getenv("HUB_API_KEY")
	if apiKey == "" {
		return nil, errors.New("HUB_API_KEY is not set (after make up: . .hub/dev.env)")
	}
	return c.exchange(ctx, method, path, body, apiKey, key)
}

// exchange returns the body of a success; a failure is a refusal.
func (c *client) exchange(ctx context.Context, method, path string, body []byte, credential, key string) ([]byte, error) {
	base := c.getenv("HUB_URL")
	if base == "" {
		return nil, errors.New("HUB_URL is not set (after make up: . .hub/dev.env)")
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(base, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("HUB_URL: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+credential)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("HUB_URL is %s, and nothing answers there: %w", base, errors.Unwrap(err))
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return answer, nil
	}
	var failed struct {
		Error struct {
			Code, Message string
			Details       json.RawMessage
		}
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal(answer, &failed); err != nil || failed.Error.Code == "" {
		return nil, fmt.Errorf("%s answered %s", base, resp.Status)
	}
	return nil, &refusal{failed.Error.Code, failed.Error.Message, failed.RequestID, failed.Error.Details}
}

// refusal is a failure that the gateway has answered.
type refusal struct {
	code, message, requestID string
	details                  json.RawMessage
}

// Error implements error: the code, the message and the request id, and in a line of their own the details.
func (r *refusal) Error() string {
	text := fmt.Sprintf("%s: %s (%s)", r.code, r.message, r.requestID)
	if len(r.details) > 0 {
		text += "\n" + string(r.details)
	}
	return text
}
