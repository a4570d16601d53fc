package api

import (
	"context"
	"net/http"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/services/payments"
)

// webhookIn is a webhook as it came: the bytes are what the provider has signed, so that nothing decodes them before.
type webhookIn struct {
	Provider string `json:"provider"`
	tool.RawRequest
}

// webhookRoute is where a provider tells of something. It is answered in the provider's own form; what was not stored is
// not acknowledged.
func webhookRoute(s *payments.Service) tool.APIRoute {
	return tool.NewRoute(tool.RouteDeclaration{Method: http.MethodPost, Path: "/v1/pay/webhooks/{provider}", Idempotency: tool.KeyIgnored,
		Credential: tool.NoCredential, Form: tool.RawForm, Declaration: tool.Declaration{Name: "pay.webhooks", Category: category,
			RecordsItself: true, MaxBody: maxBody,
			Description: "Webhooks of the payment provider, signed with its own key. A webhook is a hint: the provider is asked before anything " +
				"is done.",
			Input: tool.RawInput(schema.Required("provider", schema.String("The name of the provider.", schema.Length(1, 40)))),
			Errors: []tool.ErrorDoc{{Code: fault.AuthInvalid, Reason: "It is not signed with a credential of this service."},
				{Code: fault.NotFound, Reason: "There is no provider of that name."}, unavailable}}},
		func(ctx context.Context, in webhookIn) (tool.RawAnswer, error) {
			body, err := in.Bytes()
			if err != nil {
				return tool.RawAnswer{}, err
			}
			err = s.Receive(ctx, in.Provider, in.ContentType, body)
			if err != nil && !fault.Is(err, fault.DB) && !fault.Is(err, fault.DBTimeout) {
				return tool.RawAnswer{}, err
			}
			status, contentType, text := s.Acknowledge(ctx, err)
			return tool.RawAnswer{Status: status, ContentType: contentType, Body: []byte(text)}, nil
		})
}

// returnIn is a browser that comes back from the provider's page. Its query and its form are ignored on purpose.
type returnIn struct {
	Code string `json:"code"`
	tool.RawRequest
}

// returnRoutes are where a payer's browser comes back from the provider's page. What it brings along is not believed.
func returnRoutes(s *payments.Service) (routes []tool.APIRoute) {
	for _, way := range []struct{ method, name string }{{http.MethodGet, "pay.return.get"}, {http.MethodPost, "pay.return"}} {
		routes = append(routes, tool.NewRoute(tool.RouteDeclaration{Method: way.method, Path: "/v1/pay/return/{code}",
			Idempotency: tool.KeyIgnored,
			Success:     []int{http.StatusSeeOther, http.StatusOK}, Credential: tool.NoCredential, Form: tool.RawForm, Declaration: tool.Declaration{
				Name: way.name, Category: category, RecordsItself: true, MaxBody: maxBody,
				Description: "Where a payer's browser comes back from the provider's page: it goes on to the order's returnUrl with code and status.",
				Input:       tool.RawInput(codeMember()), Errors: []tool.ErrorDoc{{Code: fault.NotFound, Reason: "There is no such order."},
					unavailable}}},
			func(ctx context.Context, in returnIn) (tool.RawAnswer, error) {
				location, status, err := s.Return(ctx, in.Code)
				if err != nil || location != "" {
					return tool.RawAnswer{Status: http.StatusSeeOther, Location: location, ContentType: "text/plain; charset=utf-8"}, err
				}
				return tool.RawAnswer{Status: http.StatusOK, ContentType: "text/plain; charset=utf-8",
					Body: []byte("Your order is " + status + ". You can close this page.\n")}, nil
			}))
	}
	return routes
}
