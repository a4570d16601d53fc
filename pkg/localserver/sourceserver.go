package localserver

import (
	"context"
	"database/sql"

	"github.com/go-sql-driver/mysql"
)

// SourceServer is a running server that a source database can lie on: MariaDB or MySQL.
type SourceServer struct {
	*Server
	admin string // the administrator, known by the unix socket
}

// AdminDSN is the administrator's data source name, over the unix socket.
func (s *SourceServer) AdminDSN() string {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr = s.admin, "unix", s.socket()
	return c.FormatDSN()
}

// Admin opens the administrator's connection pool; the caller closes it.
func (s *SourceServer) Admin() (*sql.DB, error) { return open(s.AdminDSN()) }

// Version is what the server says of itself, such as 10.11.19-MariaDB or 9.7.4.
func (s *SourceServer) Version(ctx context.Context) (version string, err error) {
	db, err := s.Admin()
	if err != nil {
		return "", err
	}
	defer db.Close()
	return version, db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version)
}

// CreateSource is Source.Create on this server.
func (s *SourceServer) CreateSource(ctx context.Context, source Source) error {
	return source.Create(ctx, s.AdminDSN())
}

// DropSource is Source.Drop on this server.
func (s *SourceServer) DropSource(ctx context.Context, source Source) error {
	return source.Drop(ctx, s.AdminDSN())
}

// DSN is a data source name for go-sql-driver, over TCP.
// The driver's other options are its defaults.
func (s *SourceServer) DSN(user, password, db string) string {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = user, password, "tcp", s.Addr(), db
	return c.FormatDSN()
}

// ready is nil when the server answers its administrator.
func (s *SourceServer) ready(ctx context.Context) error {
	db, err := s.Admin()
	if err != nil {
		return err
	}
	defer db.Close()
	return db.PingContext(ctx)
}
