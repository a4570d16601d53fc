// Package mysql holds the fixed reads of the marketplace's database: what the query tools ask of it, each method with its
// SQL beside it. The server that they run on is package server's, the statements of callers are package statements'.
package mysql

import (
	"hub.internal/services/query"
	"hub.internal/services/query/mysql/server"
)

// Source is the marketplace's database on one server. It implements query.Source and recipients.Source.
type Source struct {
	*server.Server
	starts starts
}

var _ query.Source = (*Source)(nil)

// Open returns a Source. It does not wait for the database: the first connection finds out what server this is and
// proves that its account can only read. Its error is one line that names the setting, and no password.
func Open(dsn string, o server.Options) (*Source, error) {
	s, err := server.Open(dsn, o)
	if err != nil {
		return nil, err
	}
	return &Source{Server: s}, nil
}
