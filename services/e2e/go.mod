module hub.internal/services/e2e

go 1.26.7

require hub.internal/pkg v0.0.0

replace hub.internal/pkg => ../../pkg
