package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/go-sql-driver/mysql"

	"hub.internal/pkg/localserver"
)

// The servers that the sample lies on.
const (
	sampleMariaDB = "mariadb" // the system's
	sampleMySQL   = "mysql"   // of Debian's next release, side by side
)

// ownerOfSample loads the sample data.
const ownerOfSample = localserver.SourceOwner

// checkSource tries the user's own source database, and the name of a server for the sample, before anything is started.
func checkSource(ctx context.Context, o upOptions) error {
	if o.source != sampleMariaDB && o.source != sampleMySQL {
		return fmt.Errorf("SOURCE=%s: want %s or %s", o.source, sampleMariaDB, sampleMySQL)
	}
	if o.sourceDSN == "" {
		return nil
	}
	c, err := mysql.ParseDSN(o.sourceDSN)
	if err != nil {
		return fmt.Errorf("SOURCE_DSN: %w; want user:password@tcp(host:port)/database", err)
	}
	if c.DBName == "" {
		return errors.New("SOURCE_DSN names no database; want user:password@tcp(host:port)/database")
	}
	// The driver prints what it also returns.
	c.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return fmt.Errorf("SOURCE_DSN: %w", err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := db.PingContext(ctx); err != nil {
		return fmt.Errorf("SOURCE_DSN: cannot connect to %s: %w", c.Addr, err)
	}
	return nil
}

// createSample makes the sample's database and users.
func createSample(ctx context.Context, e environment, adminDSN string) error {
	schema, err := os.ReadFile(e.layout.path("deploy", "source", "schema.sql"))
	if err != nil {
		return err
	}
	return localserver.Source{
		Database: sourceDatabase, Schema: string(schema),
		// Two users: one that loads the rows, and one that may only read, as in production.
		Owner: ownerOfSample, OwnerPassword: e.state.secret(ownerOfSample),
		Reader: localserver.SourceReadOnly, ReaderPassword: e.state.secret(localserver.SourceReadOnly),
	}.Create(ctx, adminDSN)
}

// loadSample fills the database. An earlier attempt may have ended half way, hence --force.
func loadSample(ctx context.Context, e environment, p progress) error {
	cmd := exec.CommandContext(ctx, e.layout.bin("gen"), "--scale", "1", "--force", "--dsn", e.sampleDSN(ownerOfSample))
	cmd.Dir = e.layout.root
	cmd.Stdout, cmd.Stderr = p.out, p.out // it shows its own progress
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("loading the sample data: %w", err)
	}
	e.state.Samples[e.options.source] = true
	return e.state.save()
}
