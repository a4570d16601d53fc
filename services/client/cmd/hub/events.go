package main

// hub pay listen and hub pay trigger are for whoever builds a receiver of notifications: one shows what Hub tells, the other has
// the simulated provider make it happen. In production there is no simulator, and trigger has nobody to ask.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"hub.internal/services/client"
	"hub.internal/services/client/hook"
	"hub.internal/services/client/output"
)

const listenLong = `Receive what Hub tells the app at an address of this machine, verify its signature, and
print a line for each message: time, type, order, status, version and webhook-id.

HUB_WEBHOOK_SECRET is the app's whsec_… Messages come to the payment_notify_url of an
order, so name this address when you make one. What does not verify is answered 401 and
told on standard error. With --forward the bytes and headers go on to your receiver, and
its answer is Hub's. It ends with Ctrl-C, or after --events messages.`

// listener is hub pay listen.
// It verifies with package hook and stores nothing: what comes while it does not run, Hub sends again.
type listener struct {
	*hub
	addr, forward string
	// events is after how many messages it ends; 0 is never.
	events int
}

// listenCommand is hub pay listen.
func (p *payer) listenCommand() *cobra.Command {
	l := &listener{hub: p.hub}
	cmd := &cobra.Command{Use: "listen", Short: "Receive notifications here, verify and print them", Args: cobra.NoArgs, Long: listenLong,
		Example: "  hub pay listen --addr 127.0.0.1:8099 --forward http://127.0.0.1:3000/hook\n" +
			"  hub pay trigger paid --notify-url http://127.0.0.1:8099/"}
	cmd.Flags().StringVar(&l.addr, "addr", "127.0.0.1:8099", "where to listen; port 0 is any that is free")
	cmd.Flags().StringVar(&l.forward, "forward", "", "hand what was verified on to this URL")
	cmd.Flags().IntVar(&l.events, "events", 0, "end after this many messages (default: never)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return l.run(cmd.Context()) }
	return cmd
}

// run serves until ctx ends or enough has come. Ctrl-C is how it is meant to end.
// A URL, a secret or an address that cannot be used is E_VALIDATION. It ends with code 0, by --events or by a signal.
func (l *listener) run(ctx context.Context) error {
	if to, err := url.Parse(l.forward); err != nil || l.forward != "" && (to.Host == "" || to.Scheme != "http" && to.Scheme != "https") {
		return misused("--forward %q is no URL, as http://127.0.0.1:3000/hook is one", l.forward)
	}
	receiver, err := hook.New(l.getenv("HUB_WEBHOOK_SECRET"))
	if err != nil {
		return misused("HUB_WEBHOOK_SECRET: %v (after make up: . .hub/dev.env)", err)
	}
	socket, err := new(net.ListenConfig).Listen(ctx, "tcp", l.addr)
	if err != nil {
		return misused("--addr %s: %v", l.addr, err)
	}
	enough, end := context.WithCancel(ctx)
	defer end()
	got := 0
	receiver.Forward = l.forward
	// Tell is called for one message at a time, and refused ones count as well.
	receiver.Tell = func(m hook.Message) {
		l.tell(m)
		if got++; got == l.events {
			end()
		}
	}
	server := &http.Server{Handler: receiver, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(socket) }()
	l.note("listening at http://%s/ (Ctrl-C ends)", socket.Addr())
	select {
	case err = <-stopped:
		return err
	case <-enough.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace/2)
	defer cancel()
	_ = server.Shutdown(closing) // what still runs then ends with the program
	return nil
}

// tell prints a message in a line, and on standard error what was not believed.
// The columns are two spaces apart, and "again" marks a webhook-id that came before: Hub delivers at least once.
func (l *listener) tell(m hook.Message) {
	if m.Refused != "" {
		l.note("refused: %s (webhook-id %q, answered %d)", m.Refused, m.ID, m.Answer)
		return
	}
	line := []string{l.now().Format(time.TimeOnly), m.Type, m.Code, m.Status, fmt.Sprint(m.Seq), m.ID}
	if m.Again {
		line = append(line, "again")
	}
	if l.forward != "" {
		line = append(line, fmt.Sprintf("forwarded: %d", m.Answer))
	}
	fmt.Fprintln(l.out, output.Sanitize(strings.Join(line, "  ")))
}

// step is something that happens to an order: action of the simulator's control API, or path of the order's route at Hub.
// Exactly one of the two is set.
type step struct{ action, path string }

// event is what trigger can make happen, in steps. methods says how an order is paid that it makes for it.
type event struct {
	name, what, method string
	steps              []step
}

// pay is the payer's step: a card is pressed, a deposit moved.
const pay = "pay"

// triggers are the events, by the notifications that they end in.
// issued has no step, since making the order is the event: the simulator issues its account at once (AutoIssue).
func triggers() []event {
	paid := step{action: pay}
	return []event{
		{"issued", "a virtual account is issued", "vbank", nil},
		{"paid", "the order is paid", "vbank", []step{paid}},
		{"failed", "the payer's card is refused", "card", []step{{action: "fail"}}},
		{"canceled", "the app gives the order up", "vbank", []step{{path: "/cancel"}}},
		{"refunded", "the provider's own people pay it back", "card", []step{paid, {action: "console-cancel"}}},
		{"reversed", "the bank takes the deposit back", "vbank", []step{paid, {action: "reverse"}}},
		{"attention", "another amount than the order's is deposited", "vbank", []step{{action: "deposit-more"}}},
	}
}

// trigger is hub pay trigger.
// notify and amount are for the order that it makes, and not used where a code was given.
type trigger struct {
	*payer
	notify string
	amount int64
}

// triggerCommand is hub pay trigger.
func (p *payer) triggerCommand() *cobra.Command {
	t := &trigger{payer: p}
	long := "Have the simulated payment provider make something happen, so that Hub tells the app of it:\n\n"
	var names []cobra.Completion
	for _, e := range triggers() {
		long += fmt.Sprintf("  %-10s %s\n", e.name, e.what)
		names = append(names, cobra.CompletionWithDesc(e.name, e.what))
	}
	long += "\nWithout CODE it makes an order first. HUB_PGSIM_URL is where the simulator is, HUB_PGSIM_SECRET\n" +
		"opens it where it is not of this machine; what Hub needs is as for the other commands."
	cmd := &cobra.Command{Use: "trigger EVENT [CODE]", Short: "Have the simulated provider make an event", Args: cobra.RangeArgs(1, 2),
		Long: long, Example: "  hub pay trigger paid --notify-url http://127.0.0.1:8099/\n  hub pay trigger refunded po_…",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return names[:len(names)*max(0, 1-len(args))], cobra.ShellCompDirectiveNoFileComp
		}}
	cmd.Flags().StringVar(&t.notify, "notify-url", "", "where the notifications of the order go that it makes (default: HUB_ECHO_URL)")
	cmd.Flags().Int64Var(&t.amount, "amount", 11_000, "the price of the order that it makes, in won")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return t.run(cmd.Context(), args[0], args[1:]) }
	return cmd
}

// made is as much of an order as the steps need.
// Its names are matched without case: code, payMethod, status and amount.
type made struct {
	Code, PayMethod, Status string
	Amount                  int64
}

// run makes the event happen, step by step: after each Hub asks the provider, and tells the app.
// It prints the order as it is after the last step, in the gateway's envelope. An error ends it where it is: steps that
// were taken stay taken.
func (t *trigger) run(ctx context.Context, name string, codes []string) error {
	all := triggers()
	i := slices.IndexFunc(all, func(e event) bool { return e.name == name })
	switch {
	case i < 0:
		var names []string
		for _, e := range all {
			names = append(names, e.name)
		}
		return misused("there is no event %q: there are %s", name, strings.Join(names, ", "))
	case t.getenv("HUB_PGSIM_URL") == "":
		return misused("HUB_PGSIM_URL is not set (after make up: . .hub/dev.env)")
	case len(codes) > 0 && !orderCode.MatchString(codes[0]):
		return misused("%q is not the code of an order, po_ and 26 characters: hub pay list shows them", codes[0])
	}
	var answer []byte
	err := t.waiting(ctx, name, func(ctx context.Context) (err error) {
		var o made
		o, answer, err = t.order(ctx, all[i], codes)
		for _, s := range all[i].steps {
			// What was paid already is not paid again on the way to something else.
			if err == nil && (s.action != pay || o.Status != "PAID" || len(all[i].steps) == 1) {
				o, answer, err = t.take(ctx, s, o)
			}
		}
		return err
	})
	if err != nil {
		return explain(err)
	}
	return t.print(ctx, answer)
}

// order is the one that was named, or a new one.
// Where no address is known, the order has none, and nobody is notified of it.
func (t *trigger) order(ctx context.Context, e event, codes []string) (made, []byte, error) {
	if len(codes) > 0 {
		return t.ask(ctx, http.MethodGet, "/v1/pay/orders/"+codes[0], nil)
	}
	notify := t.notify
	if echo := t.getenv("HUB_ECHO_URL"); notify == "" && echo != "" {
		notify = echo + "/hook"
	}
	body := map[string]any{"amount": t.amount, "payMethod": e.method, "orderName": "hub pay trigger " + e.name}
	if notify != "" {
		body["payment_notify_url"] = notify
	}
	return t.ask(ctx, http.MethodPost, "/v1/pay/orders", body)
}

// take takes a step, and has Hub look at what came of it.
// Reconcile is what makes it quick: Hub would also find out by the webhook, but nobody could tell when.
func (t *trigger) take(ctx context.Context, s step, o made) (made, []byte, error) {
	path := "/v1/pay/orders/" + o.Code
	if s.path != "" {
		return t.ask(ctx, http.MethodPost, path+s.path, map[string]any{})
	}
	command := map[string]any{"orderId": o.Code}
	action := s.action
	switch {
	case action == pay && o.PayMethod == "vbank":
		action, command["amount"] = "deposit", o.Amount
	case action == "deposit-more":
		action, command["amount"] = "deposit", o.Amount+1
	}
	if err := t.control(ctx, action, command); err != nil {
		return o, nil, err
	}
	after, raw, err := t.ask(ctx, http.MethodPost, path+"/reconcile", map[string]any{})
	var failure *client.Failure
	if s.action == "deposit-more" && errors.As(err, &failure) && failure.Reason() == "AMOUNT_MISMATCH" {
		return t.ask(ctx, http.MethodGet, path, nil) // that is what was wanted
	}
	return after, raw, err
}

// ask calls a route below /v1/pay/orders.
// Each request has a token of its own, which the gateway takes once.
func (t *trigger) ask(ctx context.Context, method, path string, body any) (o made, raw []byte, err error) {
	token, err := t.token(maxLifetime)
	if err != nil {
		return o, nil, err
	}
	c, err := t.gateway()
	if err != nil {
		return o, nil, err
	}
	r := client.Request{Method: method, Path: path, Credential: token}
	if method == http.MethodPost {
		r.IdempotencyKey = ulid.Make().String()
		if r.Body, err = json.Marshal(body); err != nil {
			return o, nil, err
		}
	}
	a, err := c.Do(ctx, r)
	if err != nil {
		return o, nil, err
	}
	var envelope struct{ Data struct{ Order made } }
	if err := json.Unmarshal(a.Body, &envelope); err != nil || envelope.Data.Order.Code == "" {
		return o, nil, errors.New("the gateway's answer has no order")
	}
	return envelope.Data.Order, a.Body, nil
}

// maxControl bounds an answer of the simulator's, in bytes.
const maxControl = 64 << 10

// control has the simulator do something. Its refusal is E_VALIDATION.
// It speaks to package pgsim's control API, of which this program knows the addresses and the form of an error, and no
// more.
func (t *trigger) control(ctx context.Context, action string, command any) error {
	body, err := json.Marshal(command)
	if err != nil {
		return err
	}
	address := strings.TrimRight(t.getenv("HUB_PGSIM_URL"), "/")
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/_control/"+action, bytes.NewReader(body))
	if err != nil {
		return misused("HUB_PGSIM_URL is no address, as http://127.0.0.1:8090 is one")
	}
	if secret := t.getenv("HUB_PGSIM_SECRET"); secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	resp, err := client.NewHTTP().Do(r)
	if err != nil {
		return client.NotReached("HUB_PGSIM_URL", address, err)
	}
	defer resp.Body.Close()
	var said struct{ Error string }
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxControl)) // what broke off says nothing
	_ = json.Unmarshal(answer, &said)
	switch {
	case resp.StatusCode == http.StatusOK:
		return nil
	case resp.StatusCode == http.StatusUnauthorized:
		return misused("HUB_PGSIM_URL is %s, which wants its secret: set HUB_PGSIM_SECRET", address)
	case said.Error == "":
		return misused("HUB_PGSIM_URL is %s, and what answers there (%s) is no simulated provider", address, resp.Status)
	}
	return misused("the simulated provider does not %s: %s", action, said.Error)
}
