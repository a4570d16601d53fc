package postgres

// Find is the query that verifies a key.
const Find = find

// LinkOf is the query that resolves a user of an app.
const LinkOf = linkOf

// ListKeys, ListUsers, ListApps and ListLinks are the queries of the lists.
var (
	ListKeys  = listKeys
	ListLinks = listLinks
	ListUsers = listUsers
	ListApps  = listApps
)

// Keyring, UseToken and Sweep are the queries of a token.
var Keyring = keyring

const (
	UseToken = useToken
	Sweep    = deleteExpiredTokens
)
