package localserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// StartMySQL starts the MySQL server that lies beside the system, and returns when it answers. Its administrator has no
// password and is known by the unix socket alone: without names, no address of the network is localhost.
func StartMySQL(ctx context.Context, o Options) (*SourceServer, error) {
	root, program, err := SideBySideMySQL.command()
	if err != nil {
		return nil, err
	}
	const admin = "root"
	s, err := newServer(ctx, "mysql", o, flavor{
		users: []string{"mysql"},
		prepare: func(ctx context.Context, s *Server) error {
			if err := writeMySQLConfig(s, root); err != nil {
				return err
			}
			return s.makeData(func(making string) error {
				return s.run(ctx, append(program, "--defaults-file="+sourceConfig(s), "--initialize-insecure", "--datadir="+making)...)
			})
		},
		command: func(s *Server) ([]string, error) { return append(program, "--defaults-file="+sourceConfig(s)), nil },
		ready:   func(ctx context.Context, s *Server) error { return (&SourceServer{s, admin}).ready(ctx) },
		stop:    syscall.SIGTERM,
	})
	return &SourceServer{s, admin}, err
}

// writeMySQLConfig points the server at its own messages and plugins, which are not where the system has them.
func writeMySQLConfig(s *Server, root string) error {
	more := ""
	if s.opts.Fast {
		more = "innodb_doublewrite = 0\ninnodb_redo_log_capacity = 16M\ninnodb_log_writer_threads = 0\n"
	}
	return writeSourceConfig(s, "mysqld", fmt.Sprintf(`basedir = %[1]s
lc_messages_dir = %[1]s/share/mysql
plugin_dir = %[1]s/lib/mysql/plugin
mysqlx = 0
skip_log_bin
%[2]s`, filepath.Join(root, "usr"), more))
}

// StartSideBySideMariaDB starts the MariaDB server that lies beside the system, and returns when it answers.
func StartSideBySideMariaDB(ctx context.Context, o Options) (*MariaDB, error) {
	root, program, err := SideBySideMariaDB.command()
	if err != nil {
		return nil, err
	}
	share := filepath.Join(root, "usr", "share", "mariadb")
	own := fmt.Sprintf("basedir = %s\nlc_messages_dir = %s\nplugin_dir = %s\n", filepath.Join(root, "usr"), share,
		filepath.Join(root, "usr", "lib", "mysql", "plugin"))
	return startMariaDB(ctx, o, func(ctx context.Context, s *Server) error {
		if err := writeMariaDBConfig(s, own); err != nil {
			return err
		}
		return s.makeData(func(making string) error { return s.bootstrap(ctx, program, share, making) })
	}, func(s *Server) ([]string, error) { return append(program, "--defaults-file="+sourceConfig(s)), nil })
}

// bootstrap makes MariaDB's system tables as its own script does, which cannot be run without the system's other programs.
func (s *Server) bootstrap(ctx context.Context, program []string, share, data string) error {
	if err := s.who.own(data); err != nil {
		return err
	}
	admin, err := administrator()
	if err != nil {
		return err
	}
	var script strings.Builder
	fmt.Fprintf(&script, "create database if not exists mysql;\nuse mysql;\nSET @auth_root_socket=%s;\n", literal(admin))
	for _, name := range []string{"system_tables", "performance_tables", "system_tables_data"} {
		text, err := os.ReadFile(filepath.Join(share, "mariadb_"+name+".sql"))
		if err != nil {
			return err
		}
		script.Write(text)
	}
	path := filepath.Join(s.dir, "bootstrap.sql")
	if err := writeFile(path, script.String(), s.who); err != nil {
		return err
	}
	argv := append(program, "--defaults-file="+sourceConfig(s), "--bootstrap", "--datadir="+data)
	return s.run(ctx, append([]string{"/bin/sh", "-c", `exec "$@" <` + shellWord(path), "sh"}, argv...)...)
}

// shellWord is a text as one word of a shell.
func shellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
