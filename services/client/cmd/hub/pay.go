package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/text"
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
type payer struct {
	*hub
	user, key, member string
}

// pay is the command group of payments.
func pay(h *hub) *cobra.Command {
	p := &payer{hub: h}
	cmd := &cobra.Command{Use: "pay", Short: "Make orders, and pay them back", Long: payLong,
		// Without these two, cobra answers an unknown command with the help and no error.
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.PersistentFlags().StringVar(&p.user, "user", "", "the app's own name for its user (default: HUB_LINKED_USER)")
	cmd.PersistentFlags().StringVar(&p.member, "print", "", "print this of the answer's data and nothing else, such as order.code")
	cmd.AddCommand(p.create(), p.show(), p.list(), p.refund(), p.cancel(), p.events(), p.printToken())
	return cmd
}

// object is a request's body: flags that were not given are not in it.
type object map[string]any

func (o object) text(name, value string) {
	if value != "" {
		o[name] = value
	}
}

// won puts an amount into the object when its flag was given, whatever it is: the gateway judges it.
func (o object) won(cmd *cobra.Command, flag, name string, value int64) {
	if cmd.Flags().Changed(flag) {
		o[name] = value
	}
}

func (o object) part(name string, part object) {
	if len(part) > 0 {
		o[name] = part
	}
}

func (p *payer) create() *cobra.Command {
	var amount, supply, vat, hours int64
	var method, name, notify, back, own, holder string
	var metadata map[string]string
	cmd := &cobra.Command{Use: "create --amount WON | --supply-amount WON [--vat WON]", Short: "Make an order", Args: cobra.NoArgs,
		Example: "  hub pay create --supply-amount 10000 --vat 1000 --method vbank --notify-url $HUB_ECHO_URL/hook"}
	f := cmd.Flags()
	f.Int64Var(&amount, "amount", 0, "the total in won; alone it holds a tax of 1/11")
	f.Int64Var(&supply, "supply-amount", 0, "the price without tax")
	f.Int64Var(&vat, "vat", 0, "the tax")
	f.StringVar(&method, "method", "", "card or vbank (default: card)")
	f.StringVar(&name, "name", "", "what is sold, as the payer reads it")
	f.StringVar(&notify, "notify-url", "", "where notifications go")
	f.StringVar(&back, "return-url", "", "where the browser goes on: one of the app's redirect URLs")
	f.StringVar(&own, "client-order-id", "", "the app's own id of the order: the same again answers the same order")
	f.Int64Var(&hours, "valid-hours", 0, "how long the virtual account waits for its deposit, in hours")
	f.StringVar(&holder, "holder", "", "the name of the virtual account")
	f.StringToStringVar(&metadata, "metadata", nil, "name=value, echoed in answers and notifications; may be repeated")
	p.keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		body, vbank := object{}, object{}
		body.won(cmd, "amount", "amount", amount)
		body.won(cmd, "supply-amount", "supplyAmount", supply)
		body.won(cmd, "vat", "vat", vat)
		vbank.won(cmd, "valid-hours", "validHours", hours)
		vbank.text("holder", holder)
		for member, value := range map[string]string{"payMethod": method, "orderName": name, "payment_notify_url": notify,
			"returnUrl": back, "clientOrderId": own} {
			body.text(member, value)
		}
		body.part("vbank", vbank)
		if len(metadata) > 0 {
			body["metadata"] = metadata
		}
		return p.change(cmd.Context(), "/v1/pay/orders", body)
	}
	return cmd
}

func (p *payer) refund() *cobra.Command {
	var amount, expected int64
	var reason, bank, account, holder string
	cmd := &cobra.Command{Use: "refund CODE", Short: "Pay an order back, all of it or a part", Args: cobra.ExactArgs(1),
		Example: "  hub pay refund po_… --amount 4000 --bank 004 --account 1234567890 --holder Kim"}
	f := cmd.Flags()
	f.Int64Var(&amount, "amount", 0, "in won (default: all that can be refunded)")
	f.Int64Var(&expected, "expected", 0, "what you take the refundable amount for: another one is a conflict")
	f.StringVar(&reason, "reason", "", "why, for the provider")
	f.StringVar(&bank, "bank", "", "the bank of the account that the money goes to, three digits; for virtual accounts")
	f.StringVar(&account, "account", "", "its number, digits")
	f.StringVar(&holder, "holder", "", "whose it is")
	p.keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		body, to := object{}, object{}
		body.won(cmd, "amount", "amount", amount)
		body.won(cmd, "expected", "expectedRefundable", expected)
		body.text("reason", reason)
		to.text("bankCode", bank)
		to.text("accountNumber", account)
		to.text("holder", holder)
		body.part("refundAccount", to)
		return p.onOrder(args[0], func(path string) error { return p.change(cmd.Context(), path+"/refund", body) })
	}
	return cmd
}

func (p *payer) cancel() *cobra.Command {
	cmd := &cobra.Command{Use: "cancel CODE", Short: "Give an order up that is not paid", Args: cobra.ExactArgs(1)}
	p.keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.onOrder(args[0], func(path string) error { return p.change(cmd.Context(), path+"/cancel", object{}) })
	}
	return cmd
}

func (p *payer) show() *cobra.Command {
	return &cobra.Command{Use: "show CODE", Short: "Show an order with its refunds", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onOrder(args[0], func(path string) error { return p.read(cmd.Context(), path) })
		}}
}

func (p *payer) events() *cobra.Command {
	return &cobra.Command{Use: "events CODE", Args: cobra.ExactArgs(1),
		Short: "Show what has happened to an order, and each attempt to notify the app",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onOrder(args[0], func(path string) error { return p.read(cmd.Context(), path+"/events") })
		}}
}

func (p *payer) list() *cobra.Command {
	var limit int
	var attention bool
	text := map[string]*string{}
	cmd := &cobra.Command{Use: "list", Short: "List the orders of the user, newest first", Args: cobra.NoArgs}
	f := cmd.Flags()
	for _, of := range []struct{ flag, name, what string }{{"status", "status", "orders in this state alone"},
		{"method", "payMethod", "card or vbank alone"}, {"after", "createdAfter", "made after this time, RFC 3339"},
		{"before", "createdBefore", "made before this time, RFC 3339"}, {"cursor", "cursor", "next_cursor of the page before"}} {
		text[of.name] = f.String(of.flag, "", of.what)
	}
	f.BoolVar(&attention, "attention", false, "those alone that an operator has to look at")
	f.IntVar(&limit, "limit", 20, "how many, 100 at most")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		query := url.Values{"limit": {strconv.Itoa(limit)}}
		for name, value := range text {
			if *value != "" {
				query.Set(name, *value)
			}
		}
		if attention {
			query.Set("attention", "true")
		}
		return p.read(cmd.Context(), "/v1/pay/orders?"+query.Encode())
	}
	return cmd
}

// maxLifetime is that of a ServiceJWT.
const maxLifetime = 5 * time.Minute

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

func (p *payer) keyFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.key, "idempotency-key", "", "the same key again answers what it answered (default: a new one)")
}

var orderCode = regexp.MustCompile(`^po_[0-9A-HJKMNP-TV-Z]{26}$`)

func (p *payer) onOrder(code string, do func(path string) error) error {
	if !orderCode.MatchString(code) {
		return misused("%q is not the code of an order, po_ and 26 characters: hub pay list shows them", code)
	}
	return do("/v1/pay/orders/" + code)
}

func (p *payer) read(ctx context.Context, path string) error {
	return p.do(ctx, http.MethodGet, path, nil, "")
}

func (p *payer) change(ctx context.Context, path string, body object) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if p.key == "" {
		p.key = ulid.Make().String()
	}
	return p.do(ctx, http.MethodPost, path, b, p.key)
}

func (p *payer) do(ctx context.Context, method, path string, body []byte, key string) error {
	token, err := p.token(maxLifetime)
	if err != nil {
		return err
	}
	c, err := p.gateway()
	if err != nil {
		return err
	}
	var a *client.Answer
	err = p.waiting(ctx, path, func(ctx context.Context) error {
		a, err = c.Do(ctx, client.Request{Method: method, Path: path, Body: body, Credential: token, IdempotencyKey: key})
		return err
	})
	if err != nil {
		return explain(err)
	}
	if p.member == "" {
		return output.JSON(p.out, a.Body)
	}
	return p.printMember(a.Body)
}

// printMember prints a member of the answer's data: text as it is, anything else as JSON.
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
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(lifetime)), ID: rand.Text()}).SignedString([]byte(secret))
}

// explained is a refusal whose text says in one line what to do about it.
type explained struct {
	text  string
	cause error
}

// Error implements error.
func (e *explained) Error() string { return e.text }

// Unwrap returns the refusal.
func (e *explained) Unwrap() error { return e.cause }

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
	return &explained{text.OneLine(said), err}
}
