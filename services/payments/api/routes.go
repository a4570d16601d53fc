// Package api declares payments' routes below /v1: what they take, and what of the service answers them. It refuses to
// judge: rules are the service's.
//
// Most routes are called by Connected Apps with a token; the gateway has verified it, and its caller says for which of the
// app's users the call is. Two are called by others: the provider tells of something at the webhook's route, and a payer's
// browser comes back at the return's. Neither proves anything, and both only have the provider asked.
package api

import (
	"context"
	"embed"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/services/payments"
	"hub.internal/services/payments/order"
)

const (
	category = "payments"
	// The scopes: scopeRead sees orders, scopeWrite makes and cancels them, scopeRefund pays back.
	scopeRead   = "pay:read"
	scopeWrite  = "pay:write"
	scopeRefund = "pay:refund"

	// maxBody bounds the body of a request, in bytes.
	maxBody = 64 << 10
	// providerTimeout is the deadline of what calls the provider; others have the default.
	providerTimeout = 50 * time.Second
)

// orderCode is the form of an order's code: po_ and a ULID.
var orderCode = regexp.MustCompile(`^po_[0-9A-HJKMNP-TV-Z]{26}$`)

// Routes declares what Connected Apps can ask of payments.
func Routes(s *payments.Service) []tool.APIRoute {
	list := []tool.APIRoute{createRoute(s), listRoute(s), showRoute(s), refundRoute(s), cancelRoute(s), reconcileRoute(s), eventsRoute(s),
		redeliverRoute(s)}
	for i := range list {
		list[i].Spec.Examples = tool.Examples(examples, list[i].Spec.Name)
	}
	return append(append(list, webhookRoute(s)), returnRoutes(s)...) // whose callers are no programs of our readers'
}

//go:embed examples/*.json
var examples embed.FS

// codeMember is the {code} of a path.
func codeMember() schema.Property {
	return schema.Required("code", schema.String("The code of the order, po_ and 26 characters.", schema.Pattern(orderCode.String())))
}

// codeIn is the input of a route that takes nothing but the order in its path.
type codeIn struct {
	Code string `json:"code"`
}

// What the routes have in common among their errors.
var (
	invalid     = tool.ErrorDoc{Code: fault.Validation, Reason: "The input breaks its schema; details.violations lists every violation."}
	notFound    = tool.ErrorDoc{Code: fault.NotFound, Reason: "There is no such order of this app and this user."}
	unavailable = tool.ErrorDoc{Code: fault.DB, Reason: "The store, auth or the provider cannot be reached right now. Try again in a moment."}
)

// conflict is E_CONFLICT with each details.code that it can have, and when: codes and texts by turns.
func conflict(codes ...string) tool.ErrorDoc {
	doc := tool.ErrorDoc{Code: fault.Conflict}
	var told []string
	for pair := range slices.Chunk(codes, 2) {
		doc.DetailCodes = append(doc.DetailCodes, pair[0])
		told = append(told, pair[0]+" ("+pair[1]+")")
	}
	doc.Reason = "details.code: " + strings.Join(told, ", ") + "."
	return doc
}

// keyConflict is conflict for a route that takes an Idempotency-Key.
func keyConflict(codes ...string) tool.ErrorDoc {
	return conflict(append(codes, order.CodeKeyReused, "the key was used for something else",
		order.CodeInProgress, "the first call with the key still runs")...)
}

// createRoute declares POST /v1/pay/orders. It answers 201 for a new order, and 200 for one that the clientOrderId
// names already. With an Idempotency-Key the same call is done once (SPEC.md 7).
func createRoute(s *payments.Service) tool.APIRoute {
	won := func(name, what string) schema.Property {
		return schema.Optional(name, schema.Integer(what+" In won, digits alone."))
	}
	return tool.NewRoute(tool.RouteDeclaration{Method: http.MethodPost, Path: "/v1/pay/orders",
		Success:     []int{http.StatusCreated, http.StatusOK},
		Idempotency: tool.KeyOptional, Credential: tool.AppCredential, Declaration: tool.Declaration{
			Name: "pay.orders.create", Category: category, Scope: scopeWrite, MaxBody: maxBody, Timeout: providerTimeout,
			Description: "Creates an order, and asks the payment provider for the account or the page to pay it with. Needed is amount or " +
				"supplyAmount; " +
				"amount alone holds a tax of 1/11, and a tax that is not stated is never added to supplyAmount. A clientOrderId that was used " +
				"before answers that order (200). Status READY with neither vbank nor checkoutUrl: the provider's answer is not known yet; the " +
				"order comes by itself.",
			Output: schema.Of[payments.OrderAnswer](),
			Input: schema.Object(
				won("amount", "The total, 1 to 100,000,000."), won("supplyAmount", "The price without tax."), won("vat", "The tax."),
				schema.Optional("payMethod", schema.String("How it is paid.", schema.Enum("card", "vbank"), schema.Default("card"))),
				schema.Optional("payment_notify_url", schema.String("Where notifications go, of an allowed origin of the app.", schema.Length(1, 500))),
				schema.Optional("clientOrderId", schema.String("The app's own id of the order, unique within the app.",
					schema.Pattern(`^[A-Za-z0-9._-]{1,64}$`))),
				schema.Optional("orderName", schema.String("What is sold, as the payer reads it.", schema.Length(1, 100))),
				schema.Optional("returnUrl", schema.String("Where the browser goes on, one of the app's redirect URLs byte for byte.",
					schema.Length(1, 500))),
				schema.Optional("vbank", schema.Object(
					schema.Optional("validHours", schema.Integer("How long the account waits for its deposit; 168 when absent.", schema.Range(1, 720))),
					schema.Optional("holder", schema.String("The name of the account, at most 40 bytes.", schema.Length(1, maxHolder))))),
				schema.Optional("buyer", schema.Object(
					schema.Optional("name", schema.String("At most 30 bytes.", schema.Length(1, maxBuyerName))),
					schema.Optional("email", schema.String("An e-mail address.", schema.Length(3, 60))),
					schema.Optional("tel", schema.String("Digits.", schema.Pattern(`^[0-9]{1,20}$`))))),
				schema.Optional("metadata", schema.FreeObject("At most 20 pairs of strings, echoed in answers and notifications.")),
			),
			Errors: []tool.ErrorDoc{invalid, {Code: fault.BadAmount, DetailCodes: []string{string(fault.BadAmount)},
				Reason: "The price does not hold: details.rule is MISSING, SUM, RANGE or NEGATIVE."},
				keyConflict(order.CodeAmountMismatch, "the clientOrderId has another amount",
					order.CodeProviderDeclined, "the provider refuses the order",
					order.CodeClientOrderTaken, "the order of the clientOrderId is another user's",
					order.CodeClientOrderEnv, "the order of the clientOrderId is of another environment"),
				unavailable},
		}}, func(ctx context.Context, in createIn) (tool.Result, error) {
		w, err := in.input()
		if err != nil {
			return tool.Result{}, err
		}
		return s.Create(ctx, w)
	})
}

// showRoute declares GET /v1/pay/orders/{code}. An order of another app or user is E_NOT_FOUND, like one that does not
// exist.
func showRoute(s *payments.Service) tool.APIRoute {
	return tool.NewRoute(tool.RouteDeclaration{Method: http.MethodGet, Path: "/v1/pay/orders/{code}", Idempotency: tool.KeyIgnored,
		Credential: tool.AppCredential, Declaration: tool.Declaration{Name: "pay.orders.show", Category: category, Scope: scopeRead,
			Description: "One order of this app and this user, with its refunds.",
			Input:       schema.Object(codeMember()), Errors: []tool.ErrorDoc{invalid, notFound, unavailable}}},
		func(ctx context.Context, in codeIn) (payments.OrderAnswer, error) { return s.Order(ctx, in.Code) })
}

// listRoute declares GET /v1/pay/orders: a keyset page, newest first.
func listRoute(s *payments.Service) tool.APIRoute {
	var states []string
	for _, status := range order.Statuses() {
		states = append(states, string(status))
	}
	return tool.NewRoute(tool.RouteDeclaration{Method: http.MethodGet, Path: "/v1/pay/orders", Idempotency: tool.KeyIgnored,
		Credential: tool.AppCredential, Declaration: tool.Declaration{Name: "pay.orders.list", Category: category, Scope: scopeRead,
			Description: "The orders of this app and this user, newest first.",
			Input: schema.Object(
				schema.Optional("status", schema.String("Orders in this state alone.", schema.Enum(states...))),
				schema.Optional("payMethod", schema.String("Orders paid so alone.", schema.Enum("card", "vbank"))),
				schema.Optional("createdAfter", schema.String("RFC 3339.", schema.Length(1, 40))),
				schema.Optional("createdBefore", schema.String("RFC 3339.", schema.Length(1, 40))),
				schema.Optional("attention", schema.Boolean("Those alone that an operator has to look at.")),
				schema.Optional("limit", schema.Integer("How many.", schema.Range(1, 100), schema.Default(20))),
				schema.Optional("cursor", schema.String("next_cursor of the page before.", schema.Length(1, 200))),
			), Errors: []tool.ErrorDoc{invalid, unavailable}}},
		func(ctx context.Context, in listIn) (Orders, error) {
			f, err := in.filter()
			if err != nil {
				return Orders{}, err
			}
			page, next, err := s.List(ctx, f)
			out := Orders{Orders: []order.View{}, Next: cursor(next)}
			for _, a := range page {
				out.Orders = append(out.Orders, a.View())
			}
			return out, err
		})
}

// refundRoute declares POST /v1/pay/orders/{code}/refund. An unknown outcome at the provider is no error: the refund
// is answered as PENDING.
func refundRoute(s *payments.Service) tool.APIRoute {
	return tool.NewRoute(tool.RouteDeclaration{Method: http.MethodPost, Path: "/v1/pay/orders/{code}/refund", Idempotency: tool.KeyOptional,
		Credential: tool.AppCredential, Declaration: tool.Declaration{Name: "pay.orders.refund", Category: category, Scope: scopeRefund,
			MaxBody: maxBody, Timeout: providerTimeout,
			Description: "Pays money of a PAID order back, all of it or a part. Send an Idempotency-Key. Status PENDING: the provider's answer is " +
				"not " +
				"known yet; the refund comes to its end by itself.",
			Output: schema.Of[payments.RefundAnswer](),
			Input: schema.Object(codeMember(),
				schema.Optional("amount", schema.Integer("In won, digits alone; all that can be refunded when absent. null is refused.")),
				schema.Optional("reason", schema.String("Why, for the provider.", schema.Length(1, 100))),
				schema.Optional("refundAccount", schema.Object(
					schema.Required("bankCode", schema.String("Three digits.", schema.Pattern(`^[0-9]{3}$`))),
					schema.Required("accountNumber", schema.String("At most 16 digits.", schema.Pattern(`^[0-9]{1,16}$`))),
					schema.Required("holder", schema.String("Whose account it is.", schema.Length(1, 10))))),
				schema.Optional("expectedRefundable", schema.Integer("What the caller takes the refundable amount for: another one is a conflict.")),
			),
			Errors: []tool.ErrorDoc{invalid, notFound, keyConflict(order.CodeNotRefundable, "the order is not PAID",
				order.CodeTooManyRefunds, "the order has 200 refunds",
				order.CodeAmountMismatch, "what can be refunded is not expectedRefundable",
				order.CodeRefundNotKnown, "Hub has lost a refund by a restore",
				order.CodeExceedsBalance, "the amount is more than what can be refunded",
				order.CodeProviderDeclined, "the provider refuses the refund"), unavailable}}},
		func(ctx context.Context, in refundIn) (tool.Result, error) {
			w, err := in.input()
			if err != nil {
				return tool.Result{}, err
			}
			return s.Refund(ctx, in.Code, w)
		})
}

// cancelRoute declares POST /v1/pay/orders/{code}/cancel, which gives up an order that is not paid.
func cancelRoute(s *payments.Service) tool.APIRoute {
	return tool.NewRoute(tool.RouteDeclaration{Method: http.MethodPost, Path: "/v1/pay/orders/{code}/cancel", Idempotency: tool.KeyOptional,
		Credential: tool.AppCredential, Declaration: tool.Declaration{Name: "pay.orders.cancel", Category: category, Scope: scopeWrite,
			MaxBody: maxBody, Timeout: providerTimeout, Description: "Gives an order up that is not paid. A paid one is refunded.",
			Output: schema.Of[payments.OrderAnswer](), Input: schema.Object(codeMember()),
			Errors: []tool.ErrorDoc{invalid, notFound, keyConflict(order.CodeNotCancelable,
				"it is paid, has ended, or has a deposit of another amount"), unavailable}}},
		func(ctx context.Context, in codeIn) (tool.Result, error) { return s.CancelOrder(ctx, in.Code) })
}

// reconcileRoute declares POST /v1/pay/orders/{code}/reconcile: the one call by which an app can have the provider
// asked at once.
func reconcileRoute(s *payments.Service) tool.APIRoute {
	return tool.NewRoute(tool.RouteDeclaration{Method: http.MethodPost, Path: "/v1/pay/orders/{code}/reconcile", Idempotency: tool.KeyIgnored,
		Credential: tool.AppCredential, Declaration: tool.Declaration{Name: "pay.orders.reconcile", Category: category, Scope: scopeWrite,
			MaxBody: maxBody, Timeout: providerTimeout, Description: "Asks the provider about the order now, and brings it to what the provider " +
				"says.",
			Input: schema.Object(codeMember(), schema.Optional("amount", schema.Integer("What the caller takes the order's amount for."))),
			Errors: []tool.ErrorDoc{invalid, notFound, conflict(order.CodeAmountMismatch, "the caller or the provider has another amount"),
				unavailable}}},
		func(ctx context.Context, in reconcileIn) (payments.OrderAnswer, error) {
			amount, err := in.amount()
			if err != nil {
				return payments.OrderAnswer{}, err
			}
			return s.Reconcile(ctx, in.Code, amount)
		})
}

// eventsRoute declares GET /v1/pay/orders/{code}/events: the order's history, for support and for debugging a
// receiver.
func eventsRoute(s *payments.Service) tool.APIRoute {
	return tool.NewRoute(tool.RouteDeclaration{Method: http.MethodGet, Path: "/v1/pay/orders/{code}/events", Idempotency: tool.KeyIgnored,
		Credential: tool.AppCredential, Declaration: tool.Declaration{Name: "pay.orders.events", Category: category, Scope: scopeRead,
			Description: "What has happened to an order, by version, and each attempt to notify the app of it.",
			Input:       schema.Object(codeMember()), Errors: []tool.ErrorDoc{invalid, notFound, unavailable}}},
		func(ctx context.Context, in codeIn) (Events, error) {
			h, err := s.History(ctx, in.Code)
			return eventsOf(h), err
		})
}

// redeliverIn names a notification of an order.
type redeliverIn struct {
	Code string `json:"code"`
	ID   string `json:"id"`
}

// Redelivered is the answer of a redelivery.
type Redelivered struct {
	ID    string                     `json:"id"`
	State payments.NotificationState `json:"state"`
}

// redeliverRoute declares the redelivery of one notification. It is answered 202: the attempt is made by a job.
func redeliverRoute(s *payments.Service) tool.APIRoute {
	return tool.NewRoute(tool.RouteDeclaration{Method: http.MethodPost, Path: "/v1/pay/orders/{code}/notifications/{id}/redeliver",
		Success: []int{http.StatusAccepted}, Idempotency: tool.KeyIgnored, Credential: tool.AppCredential, Declaration: tool.Declaration{
			Name: "pay.notifications.redeliver", Category: category, Scope: scopeWrite, MaxBody: maxBody,
			Description: "Sends a notification again, at once: the same bytes under the same id.",
			Input:       schema.Object(codeMember(), schema.Required("id", schema.String("The id of the notification.", schema.Length(1, 64)))),
			Errors:      []tool.ErrorDoc{invalid, notFound, {Code: fault.Conflict, Reason: "The order has no payment_notify_url."}, unavailable}}},
		func(ctx context.Context, in redeliverIn) (Redelivered, error) {
			return Redelivered{in.ID, payments.NotificationPending}, s.Redeliver(ctx, in.Code, in.ID)
		})
}
