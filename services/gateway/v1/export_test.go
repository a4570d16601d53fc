package v1

import "hub.internal/services/gateway/catalog"

// WithValue is the input of a body and a value of its path.
func WithValue(name, value string, body []byte) []byte {
	return withValues([]catalog.PathValue{{Name: name, Value: value}}, body)
}
