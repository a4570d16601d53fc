package postgres

// Find is the query that verifies a key.
const Find = find

// ListKeys, ListUsers and ListApps are the queries of the lists.
var (
	ListKeys  = listKeys
	ListUsers = listUsers
	ListApps  = listApps
)

// Keyring, Burn, FindLink and Sweep are the queries of a token.
var Keyring = keyring

const (
	Burn     = burn
	FindLink = findLink
	Sweep    = sweep
)
