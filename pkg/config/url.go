package config

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// stores are the schemes of URLs that hold a password.
var stores = []string{"postgres", "postgresql", "redis", "rediss"}

// splitPassword names a setting whose URL of a store has a password that is not percent-encoded; empty without one.
func splitPassword(settings reflect.Value) (name string) {
	for i := range settings.NumField() {
		field, value := settings.Type().Field(i), settings.Field(i)
		setting, _, _ := strings.Cut(field.Tag.Get("env"), ",")
		switch {
		case field.Anonymous:
			name = cmp.Or(name, splitPassword(value))
		case setting != "" && field.Type == reflect.TypeFor[Secret]() && splitsPassword(value.Interface().(Secret).Reveal()):
			name = setting
		}
	}
	return name
}

// splitsPassword tells whether a URL of a store has an @ behind its host, where none belongs: then a password with /, ? or # is not
// percent-encoded, and a part of it would be taken for the host, looked up, and logged. A parameter's value may have one.
func splitsPassword(text string) bool {
	scheme, rest, _ := strings.Cut(text, "://")
	end := strings.IndexAny(rest, "/?#")
	if !slices.Contains(stores, scheme) || end < 0 {
		return false
	}
	rest, fragment, _ := strings.Cut(rest[end:], "#")
	path, query, _ := strings.Cut(rest, "?")
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		path += name
	}
	return strings.Contains(path+fragment, "@")
}
