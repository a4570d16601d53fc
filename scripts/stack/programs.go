package main

import (
	"context"
	"errors"
	"fmt"

	"hub.internal/pkg/localserver"
)

// serviceStarter starts one of Hub's services; its log is a file that it writes itself.
// The file is the child's own: what it prints is kept also when this process is killed.
func serviceStarter(l layout, spec serviceSpec) starter {
	return func(context.Context) (running, string, error) {
		log, err := openLog(l.log(spec.Name))
		if err != nil {
			return nil, "", err
		}
		defer log.Close() // the child has its own copy
		p, err := localserver.StartProgram(localserver.Program{Path: spec.Path, Args: spec.Args, Env: spec.Env, Dir: l.root, Output: log})
		return p, "", err
	}
}

// serverStarter starts a server on its data below .hub. A new start takes over the data of
// a crashed one.
func serverStarter(l layout, spec serverSpec) starter {
	return func(ctx context.Context) (running, string, error) {
		return startServer(ctx, spec, localserver.Options{
			Dir: l.data(spec.Name), Port: spec.Port, Password: spec.Password, Users: spec.Users,
			// Not a file: a server's last words are wanted in its error as well.
			Output: logWriter(l.log(spec.Name)),
		})
	}
}

// startServer starts the kind of server that the spec names, and says where its administrator connects, where that
// is not by password.
func startServer(ctx context.Context, spec serverSpec, o localserver.Options) (program running, admin string, err error) {
	switch spec.Name {
	case sampleMariaDB:
		var s *localserver.MariaDB
		if s, err = localserver.StartMariaDB(ctx, o); err == nil {
			admin = s.AdminDSN()
		}
		return s, admin, err
	case sampleMySQL:
		var s *localserver.SourceServer
		if s, err = localserver.StartMySQL(ctx, o); err == nil {
			admin = s.AdminDSN()
		}
		return s, admin, err
	case "postgres":
		var s *localserver.Postgres
		if s, err = localserver.StartPostgres(ctx, o); err == nil {
			admin = s.SuperuserURL("postgres")
		}
		return s, admin, err
	case "redis":
		program, err = localserver.StartRedis(ctx, o)
	case "consul":
		program, err = localserver.StartConsul(ctx, o)
	default:
		err = fmt.Errorf("unknown server %s", spec.Name)
	}
	return program, "", err
}

// logWriter appends to a log, which it opens for each write: servers print little, and so
// no file has to be closed when they end.
type logWriter string

// Write appends to the log.
func (path logWriter) Write(b []byte) (int, error) {
	f, err := openLog(string(path))
	if err != nil {
		return 0, err
	}
	n, err := f.Write(b)
	return n, errors.Join(err, f.Close())
}
