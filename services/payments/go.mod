module hub.internal/services/payments

go 1.26.7

require (
	github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
	golang.org/x/net v0.59.0
	hub.internal/pkg v0.0.0
)

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
)

replace hub.internal/pkg => ../../pkg
