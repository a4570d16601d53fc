package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/text"
)

const (
	// checkTimeout bounds one check of the doctor.
	checkTimeout = 5 * time.Second
	// skewAllowed is by how much the clocks of this machine and of PostgreSQL may differ: a token lives for 60 s.
	skewAllowed = 5 * time.Second
)

// errUnwell ends the doctor when something is wrong: what it is, was printed.
var errUnwell = errors.New("something is wrong")

// doctor makes the service of its settings without letting it work, asks everything that they name, and prints a line
// for each: "ok" or "wrong", what it is, and what to mend.
func (p Program[S]) doctor(ctx context.Context, out io.Writer, environ []string) error {
	h, err := p.make(ctx, environ, doctorSettings)
	if err != nil {
		return report(out, "configuration", err)
	}
	err = report(out, "configuration", nil)
	for _, c := range h.everyCheck() {
		asking, cancel := context.WithTimeout(ctx, checkTimeout)
		err = errors.Join(err, report(out, c.name, c.ask(asking)))
		cancel()
	}
	if err != nil {
		return errUnwell
	}
	return nil
}

// doctorSettings changes settings for a process that is made and asked, but takes no call and does no work beside the one that
// may be running here.
func doctorSettings(s Settings) Settings {
	s.Addr, s.OpsAddr, s.TraceRatio, s.LogLevel = "127.0.0.1:0", noOperations, 0, slog.LevelError+1
	return s
}

// report prints a line about what was asked, and returns errUnwell when it is wrong.
func report(out io.Writer, what string, wrong error) error {
	if wrong == nil {
		fmt.Fprintf(out, "ok     %s\n", what)
		return nil
	}
	fmt.Fprintf(out, "wrong  %s: %s\n", what, text.OneLine(cause(wrong)))
	return errUnwell
}

// cause is what a person who runs Hub can do something about: a fault's message is for callers.
func cause(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		if inner := errors.Unwrap(f); inner != nil {
			return inner.Error()
		}
		return f.Message
	}
	return err.Error()
}

// Check adds a question of the doctor: whether what a setting names is as the service needs it. Readiness, the write
// store and the neighbours it asks about by itself.
func (h *Host) Check(name, setting string, ask func(context.Context) error) {
	h.process.examined = append(h.process.examined, check{name, func(ctx context.Context) error {
		err := ask(ctx)
		if err == nil || strings.HasPrefix(cause(err), "HUB_") {
			return err
		}
		return fmt.Errorf("%s: %s", setting, cause(err))
	}})
}

// everyCheck lists what the doctor asks, in its order.
func (h *Host) everyCheck() []check {
	list := []check{{"write store", h.checkRole}, {"clock", h.checkClock}, {"audit log", h.checkAudit}}
	for _, c := range h.process.checks {
		list = append(list, check{"ready: " + c.name, c.ask})
	}
	if endpoint := h.process.settings.OTLPEndpoint; endpoint != "" {
		list = append(list, check{"collector", checkCollector(endpoint)})
	}
	return append(list, h.process.examined...)
}

// checkRole asks whether the write store is used as the service's own role, and by no more.
func (h *Host) checkRole(ctx context.Context) error {
	const statement = `SELECT current_user::text, rolsuper OR pg_has_role(current_user, $1, 'MEMBER')
		FROM pg_roles WHERE rolname = current_user`
	var role string
	var more bool
	if err := h.pool.QueryRow(ctx, statement, postgres.Owner).Scan(&role, &more); err != nil {
		return postgres.Explain(err, h.name)
	}
	switch own := postgres.ServiceRole(h.name); {
	case more:
		return fmt.Errorf("HUB_WRITE_STORE_URL logs in as %s, which may do anything there; let it name %s", role, own)
	case role != own:
		return fmt.Errorf("HUB_WRITE_STORE_URL logs in as %s; the role of this service is %s", role, own)
	}
	return nil
}

// checkClock compares the clocks of this machine and of PostgreSQL.
func (h *Host) checkClock(ctx context.Context) error {
	asked := time.Now()
	var there time.Time
	if err := h.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&there); err != nil {
		return postgres.Explain(err, h.name)
	}
	// The answer was made between the question and now.
	if apart := there.Sub(asked); apart < -skewAllowed || time.Until(there) > skewAllowed {
		return fmt.Errorf("PostgreSQL's clock is %s off this machine's; synchronise both (NTP)", apart.Round(time.Second))
	}
	return nil
}

// checkAudit asks whether the role may append to the audit log.
func (h *Host) checkAudit(ctx context.Context) error {
	const statement = `SELECT coalesce(has_any_column_privilege(current_user, to_regclass('audit.calls'), 'INSERT'), false)`
	var may bool
	if err := h.pool.QueryRow(ctx, statement).Scan(&may); err != nil {
		return postgres.Explain(err, h.name)
	}
	if !may {
		return fmt.Errorf("audit.calls is not there for this role; run `%s migrate`", h.name)
	}
	return nil
}

// mostInstances bounds how many instances of a neighbour are asked.
const mostInstances = 100

// checkNeighbour asks whether a neighbour can be found, and whether each of its instances answers and believes what this process
// signs: replicas may have been started with other settings.
func (h *Host) checkNeighbour(name string, c *remote.Client) check {
	return check{"neighbour " + name, func(ctx context.Context) error {
		outcomes, err := c.Each(caller.Alone(ctx, h.name), remote.Request{Method: http.MethodGet, Path: rpc.TrustPath,
			Success: []int{http.StatusNoContent}}, mostInstances)
		if err != nil {
			return h.explainNeighbour(err)
		}
		var wrong []string
		for _, o := range outcomes {
			if o.Err != nil {
				wrong = append(wrong, fmt.Sprintf("at %s: %s", o.Addr, cause(h.explainNeighbour(o.Err))))
			}
		}
		if wrong != nil {
			return errors.New(strings.Join(wrong, "; "))
		}
		return nil
	}}
}

// explainNeighbour tells what to mend of a neighbour that does not answer as it should.
func (h *Host) explainNeighbour(err error) error {
	switch {
	case remote.TokenRefused(err):
		return fmt.Errorf("it does not believe this process; its HUB_TRUSTED_KEYS need the public half of HUB_SIGNING_KEY as %s", h.name)
	case remote.Unanswered(err):
		return fmt.Errorf("%s (HUB_DISCOVERY=%s)", cause(err), h.process.settings.Discovery)
	}
	return err
}

// checkCollector asks whether somebody listens where traces go.
func checkCollector(endpoint string) func(context.Context) error {
	return func(ctx context.Context) error {
		addr, err := collectorAddr(endpoint)
		if err != nil {
			return err
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
		}
		return conn.Close()
	}
}

// collectorAddr is where an exporter finds a collector by its URL: a URL without a port has its scheme's.
func collectorAddr(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Hostname() == "" {
		return "", errors.New("OTEL_EXPORTER_OTLP_ENDPOINT is not a URL such as http://collector:4318")
	}
	port := "80"
	if u.Scheme == "https" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port)), nil
}
