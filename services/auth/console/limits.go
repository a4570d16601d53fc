package console

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"

	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/auth"
)

// limitFields ask for rate limits; what the form does not say is as it stands.
// Keys and apps have the same limits, one for each external user and one for all together, so they share these fields.
// The service bounds the numbers (E_VALIDATION).
func limitFields(ctx context.Context, form url.Values, now auth.Limits) []*web.Field {
	field := func(name, label string, value int) *web.Field {
		return &web.Field{Name: name, Label: label, Type: "number", Required: true, Value: cmp.Or(form.Get(name), strconv.Itoa(value))}
	}
	return []*web.Field{
		field("user-per-minute", i18n.T(ctx, "Calls a minute of one external user"), now.UserPerMinute),
		field("user-burst", i18n.T(ctx, "Calls of one external user at once"), now.UserBurst),
		field("service-per-minute", i18n.T(ctx, "Calls a minute of all together"), now.ServicePerMinute),
		field("service-burst", i18n.T(ctx, "Calls of all together at once"), now.ServiceBurst),
	}
}

// limitsOf reads what limitFields were answered with.
func limitsOf(fields []*web.Field) auth.Limits {
	return auth.Limits{UserPerMinute: wholeNumber(fields[0].Value), UserBurst: wholeNumber(fields[1].Value),
		ServicePerMinute: wholeNumber(fields[2].Value), ServiceBurst: wholeNumber(fields[3].Value)}
}

// wholeNumber reads a whole number. What is none is refused as one that is too small.
// So the service's bounds tell all that is wrong, and no second message is needed.
func wholeNumber(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// anyProblem tells whether one of the fields has a problem.
func anyProblem(fields []*web.Field) bool {
	return slices.ContainsFunc(fields, func(f *web.Field) bool { return f.Error != "" })
}
