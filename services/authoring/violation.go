package authoring

import (
	"strconv"
	"strings"

	"hub.internal/pkg/schema"
)

// at is the JSON pointer to a target, or to a member of it.
func at(index int, member ...string) string {
	return strings.Join(append([]string{"/targets/" + strconv.Itoa(index)}, member...), "/")
}

// lineHolds tells in most cases that a text is a fit line, without a path made for it.
func lineHolds(text string, max int) bool {
	return len(text) <= max && strings.IndexFunc(text, schema.Unprintable) < 0
}
