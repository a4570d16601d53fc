package api

import (
	"slices"
	"strings"

	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/services/payments/order"
)

// Notifications declares what apps are told (SPEC.md 9): a type for each that the order's state machine has, and when it is sent.
func Notifications() *tool.Notifications {
	all := &tool.Notifications{Body: schema.Encode(schema.Of[order.Message]())}
	when := map[string][]string{}
	for _, row := range order.Transitions() {
		kind := row.Notification
		if kind == "" {
			continue
		}
		if when[kind] == nil {
			all.Types = append(all.Types, tool.NotificationType{Type: kind})
		}
		if !slices.Contains(when[kind], row.Condition) {
			when[kind] = append(when[kind], row.Condition)
		}
	}
	for i, t := range all.Types {
		all.Types[i].When = strings.Join(when[t.Type], "; or: ")
	}
	all.Example, _ = examples.ReadFile("examples/notification.json") // embedded
	return all
}
