package postgres

// Find is the query that verifies a key.
const Find = find
