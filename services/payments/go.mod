module hub.internal/services/payments

go 1.26.7

require hub.internal/pkg v0.0.0

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	github.com/oklog/ulid/v2 v2.1.2 // indirect
)

replace hub.internal/pkg => ../../pkg
