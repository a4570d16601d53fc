package main

// hub pay plays a Connected App: each command of the table routes is one route of /v1/pay, called with a ServiceJWT
// that is made for it. The contract is services/payments/SPEC.md.

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hub.internal/pkg/fault"
	"hub.internal/services/client"
	"hub.internal/services/client/output"
)

const payLong = `hub pay makes orders and pays them back as a Connected App, for one of its users.

  HUB_URL             the gateway
  HUB_SERVICE_CODE    the app's code
  HUB_SERVICE_SECRET  its secret, hss_…: auth app issue-secret CODE prints it
  HUB_LINKED_USER     the app's own name for its user, unless --user names one
  HUB_JWT_AUDIENCE    whom tokens are for; hub when it is not set

After make up all of these are in .hub/dev.env.`

// payer calls /v1/pay with a ServiceJWT that it makes for each call.
// It never sends the API key: /v1/pay is for apps.
type payer struct {
	*hub
	// The flags that its commands share: --user, --idempotency-key, --print and --jq.
	user, key, member, jq string
}

// payCommand is the command group of payments.
func payCommand(h *hub) *cobra.Command {
	p := &payer{hub: h}
	cmd := &cobra.Command{Use: "pay", Short: "Make orders, and pay them back", Long: payLong,
		// Without these two, cobra answers an unknown command with the help and no error.
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.PersistentFlags().StringVar(&p.user, "user", "", "the app's own name for its user (default: HUB_LINKED_USER)")
	cmd.PersistentFlags().StringVar(&p.member, "print", "", "print this of the answer's data and nothing else, such as order.code")
	cmd.PersistentFlags().StringVar(&p.jq, "jq", "", "print what this expression of jq makes of the answer")
	for _, r := range routes() {
		cmd.AddCommand(p.command(r))
	}
	cmd.AddCommand(p.printToken(), p.listenCommand(), p.triggerCommand())
	return cmd
}

// route is a command that calls one route below /v1/pay/orders.
// The table of routes is data: command makes flags, help and request of each row.
type route struct {
	// use is cobra's: the name and the arguments as help shows them.
	use, short, example string
	// method is GET, whose parameters are a query, or POST, whose parameters are a body of JSON.
	method string
	// path follows the order's code; it is only read where ofOrder is true.
	path    string
	ofOrder bool
	params  []param
}

// param is a flag and the parameter that it sets, with a dot for a member of an object: vbank.holder. A flag that was not given
// sets nothing.
type param struct {
	flag, name string
	kind       kind
	help       string
}

// kind is the type of a flag's value.
type kind int

const (
	kindText kind = iota
	kindNumber
	kindBoolean
	kindPairs // name=value, which may be repeated
)

// routes are the commands of hub pay. The gateway judges what is given: the client has no rules for payments.
// A parameter that a later gateway has is added here, and nowhere else.
func routes() []route {
	return []route{
		{use: "create --amount WON | --supply-amount WON [--vat WON]", short: "Make an order", method: http.MethodPost,
			example: "  hub pay create --supply-amount 10000 --vat 1000 --method vbank --notify-url $HUB_ECHO_URL/hook",
			params: []param{
				{"amount", "amount", kindNumber, "the total in won; alone it holds a tax of 1/11"},
				{"supply-amount", "supplyAmount", kindNumber, "the price without tax"},
				{"vat", "vat", kindNumber, "the tax"},
				{"method", "payMethod", kindText, "card or vbank (default: card)"},
				{"name", "orderName", kindText, "what is sold, as the payer reads it"},
				{"notify-url", "payment_notify_url", kindText, "where notifications go"},
				{"return-url", "returnUrl", kindText, "where the browser goes on: one of the app's redirect URLs"},
				{"client-order-id", "clientOrderId", kindText, "the app's own id of the order: the same again answers the same order"},
				{"valid-hours", "vbank.validHours", kindNumber, "how long the virtual account waits for its deposit, in hours"},
				{"holder", "vbank.holder", kindText, "the name of the virtual account"},
				{"metadata", "metadata", kindPairs, "name=value, echoed in answers and notifications; may be repeated"},
			}},
		{use: "show CODE", short: "Show an order with its refunds", method: http.MethodGet, ofOrder: true},
		{use: "list", short: "List the orders of the user, newest first", method: http.MethodGet, params: []param{
			{"status", "status", kindText, "orders in this state alone"},
			{"method", "payMethod", kindText, "card or vbank alone"},
			{"after", "createdAfter", kindText, "made after this time, RFC 3339"},
			{"before", "createdBefore", kindText, "made before this time, RFC 3339"},
			{"cursor", "cursor", kindText, "next_cursor of the page before"},
			{"attention", "attention", kindBoolean, "those alone that an operator has to look at"},
			{"limit", "limit", kindNumber, "how many, 100 at most (default: 20)"},
		}},
		{use: "refund CODE", short: "Pay an order back, all of it or a part", method: http.MethodPost, path: "/refund", ofOrder: true,
			example: "  hub pay refund po_… --amount 4000 --bank 004 --account 1234567890 --holder Kim",
			params: []param{
				{"amount", "amount", kindNumber, "in won (default: all that can be refunded)"},
				{"expected", "expectedRefundable", kindNumber, "what you take the refundable amount for: another one is a conflict"},
				{"reason", "reason", kindText, "why, for the provider"},
				{"bank", "refundAccount.bankCode", kindText, "the bank of the account that the money goes to, three digits; for virtual accounts"},
				{"account", "refundAccount.accountNumber", kindText, "its number, digits"},
				{"holder", "refundAccount.holder", kindText, "whose it is"},
			}},
		{use: "cancel CODE", short: "Give an order up that is not paid", method: http.MethodPost, path: "/cancel", ofOrder: true},
		{use: "events CODE", short: "Show what has happened to an order, and each attempt to notify the app",
			method: http.MethodGet, path: "/events", ofOrder: true},
	}
}

// orderCode is the form of an order's code.
// It is po_ and a ULID, in Crockford's alphabet.
var orderCode = regexp.MustCompile(`^po_[0-9A-HJKMNP-TV-Z]{26}$`)

// command makes the cobra command of a route: its flags, and a run that sends the request.
func (p *payer) command(r route) *cobra.Command {
	cmd := &cobra.Command{Use: r.use, Short: r.short, Example: r.example, Args: cobra.NoArgs}
	if r.ofOrder {
		cmd.Args = cobra.ExactArgs(1)
	}
	flags := cmd.Flags()
	for _, of := range r.params {
		switch of.kind {
		// Numbers are whole; none of these flags has a default of its own: the gateway has them.
		case kindText:
			flags.String(of.flag, "", of.help)
		case kindNumber:
			flags.Int64(of.flag, 0, of.help)
		case kindBoolean:
			flags.Bool(of.flag, false, of.help)
		case kindPairs:
			flags.StringToString(of.flag, nil, of.help)
		}
	}
	if r.method == http.MethodPost {
		flags.StringVar(&p.key, "idempotency-key", "", "the same key again answers what it answered (default: a new one)")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path := "/v1/pay/orders"
		if r.ofOrder {
			if !orderCode.MatchString(args[0]) {
				return misused("%q is not the code of an order, po_ and 26 characters: hub pay list shows them", args[0])
			}
			path += "/" + args[0] + r.path
		}
		if r.method == http.MethodGet {
			return p.do(cmd.Context(), r.method, path+r.query(flags), nil)
		}
		body, err := json.Marshal(r.body(flags))
		if err != nil {
			return err
		}
		return p.do(cmd.Context(), r.method, path, body)
	}
	return cmd
}

// query is that of a GET with the flags that were given, or "".
// The order of the parameters is that of their names.
func (r route) query(flags *pflag.FlagSet) string {
	// A query has texts only, so a flag's value is taken as it was written.
	query := url.Values{}
	for _, of := range r.params {
		if flag := flags.Lookup(of.flag); flag.Changed && flag.Value.String() != "" {
			query.Set(of.name, flag.Value.String())
		}
	}
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}

// body is that of a POST with the flags that were given; an empty text is as if it were not given.
// Numbers are written as integers, and a name with a dot as an object with a member.
func (r route) body(flags *pflag.FlagSet) map[string]any {
	body := map[string]any{}
	for _, of := range r.params {
		var value any
		switch of.kind {
		case kindNumber:
			value, _ = flags.GetInt64(of.flag) // the flag was declared with this type, here and below
		case kindPairs:
			value, _ = flags.GetStringToString(of.flag)
		default:
			value, _ = flags.GetString(of.flag)
		}
		if !flags.Changed(of.flag) || value == "" {
			continue
		}
		object, member := body, of.name
		// The two levels are all that the routes have.
		if outer, inner, nested := strings.Cut(of.name, "."); nested {
			object, _ = body[outer].(map[string]any)
			if object == nil {
				object = map[string]any{}
				body[outer] = object
			}
			member = inner
		}
		object[member] = value
	}
	return body
}

// maxLifetime is that of a ServiceJWT.
// The gateway refuses tokens that are good for longer.
const maxLifetime = 5 * time.Minute

// printToken is hub pay token.
// It is for curl and the like. Standard output has the token alone, so that $(hub pay token) works.
func (p *payer) printToken() *cobra.Command {
	lifetime := maxLifetime
	cmd := &cobra.Command{Use: "token", Short: "Print a ServiceJWT, good for one call", Args: cobra.NoArgs,
		Example: `  curl -H "Authorization: Bearer $(hub pay token)" $HUB_URL/v1/pay/orders`}
	cmd.Flags().DurationVar(&lifetime, "lifetime", lifetime, "how long it is good for, 5m at most")
	cmd.RunE = func(*cobra.Command, []string) error {
		if lifetime < time.Second || lifetime > maxLifetime {
			return misused("--lifetime is %s: a token is good for 1s to %s", lifetime, maxLifetime)
		}
		token, err := p.token(lifetime)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(p.out, token)
		return err
	}
	return cmd
}

// do calls a route and prints its answer, or the member of --print.
// It is the gateway's whole envelope, as hub call prints it.
// A POST has an Idempotency-Key: --idempotency-key, or a new one, which the hint beside an error without an answer has (exchangeError).
func (p *payer) do(ctx context.Context, method, path string, body []byte) error {
	if _, err := filterOf(p.jq); err != nil {
		return err // before anything is sent
	}
	token, err := p.token(maxLifetime)
	if err != nil {
		return err
	}
	c, err := p.gateway()
	if err != nil {
		return err
	}
	if method == http.MethodPost && p.key == "" {
		p.key = ulid.Make().String()
	}
	var a *client.Answer
	err = p.waiting(ctx, path, func(ctx context.Context) error {
		a, err = c.Do(ctx, client.Request{Method: method, Path: path, Body: body, Credential: token, IdempotencyKey: p.key})
		return err
	})
	if err != nil {
		return &exchangeError{error: explain(err), idempotencyKey: p.key}
	}
	return p.print(ctx, a.Body)
}

// print prints an answer, or what --print or --jq want of it.
// One way alone may be chosen; both are E_VALIDATION.
func (p *payer) print(ctx context.Context, answer []byte) error {
	filter, err := filterOf(p.jq)
	switch {
	case err != nil:
		return err
	case p.member != "" && filter != nil:
		return misused("--print and --jq both say what is printed: leave one out")
	case filter != nil:
		return filter.Write(ctx, p.out, p.screen, answer)
	case p.member != "":
		return p.printMember(answer)
	}
	return output.JSON(p.out, answer)
}

// printMember prints a member of the answer's data: text as it is, anything else as JSON.
// A member that is not there is E_VALIDATION: a script must not go on with an empty text.
func (p *payer) printMember(answer []byte) error {
	var envelope struct{ Data json.RawMessage }
	if err := json.Unmarshal(answer, &envelope); err != nil {
		return fmt.Errorf("the gateway's answer cannot be read: %w", err)
	}
	value := envelope.Data
	for _, name := range strings.Split(p.member, ".") {
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) != nil || members[name] == nil {
			return misused("--print %s: there is no %q in the answer's data", p.member, name)
		}
		value = members[name]
	}
	var text string
	if json.Unmarshal(value, &text) != nil || string(value) == "null" {
		return output.JSON(p.out, value)
	}
	_, err := fmt.Fprintln(p.out, text)
	return err
}

// token makes a ServiceJWT for the user.
// It is HS256 with the app's secret, from now on for lifetime (SPEC.md 2.1). What is missing is E_VALIDATION, and names the
// variable.
func (p *payer) token(lifetime time.Duration) (string, error) {
	code, secret, user := p.getenv("HUB_SERVICE_CODE"), p.getenv("HUB_SERVICE_SECRET"), p.user
	if user == "" {
		user = p.getenv("HUB_LINKED_USER")
	}
	switch {
	case code == "":
		return "", misused("HUB_SERVICE_CODE is not set (after make up: . .hub/dev.env)")
	case secret == "":
		return "", misused("HUB_SERVICE_SECRET is not set (after make up: . .hub/dev.env)")
	case user == "":
		return "", misused("--user is not given and HUB_LINKED_USER is not set (after make up: . .hub/dev.env)")
	}
	audience := p.getenv("HUB_JWT_AUDIENCE")
	if audience == "" {
		audience = "hub"
	}
	now := p.now()
	return jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{Issuer: code, Subject: user, Audience: jwt.ClaimStrings{audience},
		// Each token has an id of its own, because the gateway takes each once.
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(lifetime)), ID: rand.Text()}).SignedString([]byte(secret))
}

// explain returns the gateway's refusal with a message that says in one line what to do, and any other error as it is.
// The code stays in the message; the exit code follows the HTTP status.
// ACCOUNT_LINK_REQUIRED comes with the address at which the user links an account (SPEC.md 3.1): that is the whole message
// then.
func explain(err error) error {
	var f *client.Failure
	if !errors.As(err, &f) || f.Code == "" {
		return err
	}
	var details struct {
		LinkURL string `json:"link_url"`
	}
	_ = json.Unmarshal(f.Details, &details) // details of another form say nothing here
	name := string(f.Code)
	if reason := f.Reason(); reason != "" && reason != name {
		name += " " + reason
	}
	said := fmt.Sprintf("%s: %s (%s)", name, f.Message, f.RequestID)
	switch {
	case details.LinkURL != "":
		said = fmt.Sprintf("%s: the user has to link an account first; open %s", f.Code, details.LinkURL)
	case f.Code == fault.AuthInvalid:
		said += "; HUB_SERVICE_CODE and HUB_SERVICE_SECRET have to be those of one app, and HUB_JWT_AUDIENCE the gateway's"
	}
	return &client.Failure{Status: f.Status, Message: said, Final: f.Final}
}
