package postgres

// Find is the query that verifies a key.
const Find = find

// ListKeys, ListUsers and ListApps are the queries of the lists.
var (
	ListKeys  = listKeys
	ListUsers = listUsers
	ListApps  = listApps
)
