package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"hub.internal/services/client/output"
)

// shell runs command lines as a program would be, without being one.
type shell struct {
	t *testing.T
	// in is what is piped in, when piped is true or a command reads it.
	in    string
	piped bool
	// width makes out a terminal.
	width       int
	typed       []string
	environ     map[string]string
	out, err    string
	code        int
	now         time.Time
	interrupted bool
}

// shellOf is a shell with directories of its own: no test reads what its user has kept.
func shellOf(t *testing.T, environ map[string]string) *shell {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{"HUB_CONFIG_DIR": dir + "/config", "HUB_CACHE_DIR": dir + "/cache"}
	for name, value := range environ {
		all[name] = value
	}
	return &shell{t: t, environ: all, now: time.Now()}
}

func (s *shell) run(args ...string) *shell {
	s.t.Helper()
	var out, err bytes.Buffer
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	if s.interrupted {
		cancel()
	}
	term := terminal{
		getenv: func(name string) string { return s.environ[name] },
		in:     strings.NewReader(s.in),
		piped:  s.piped,
		out:    &out,
		err:    &err,
		screen: output.Screen{Width: s.width},
		now:    func() time.Time { return s.now },
	}
	if s.typed != nil {
		answer := func(context.Context, string) (string, error) {
			text := s.typed[0]
			s.typed = s.typed[1:]
			return text, nil
		}
		term.ask, term.secret = answer, answer
	}
	s.code = run(ctx, args, term)
	s.out, s.err = out.String(), err.String()
	return s
}
