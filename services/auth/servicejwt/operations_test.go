package servicejwt_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-kit/kit/sd"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/service"
	"hub.internal/services/auth/servicejwt"
)

// TestOverTheWire: a token goes through both operations, for the gateway alone, and nothing of it stays in the log.
func TestOverTheWire(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.link(t, "shop", "u-77", "ACTIVE", "pay:read", "pay:write")
	logger := slog.New(slog.NewJSONHandler(o.log, nil))
	mux := http.NewServeMux()
	service.Operations(
		rpc.Server{Mux: mux, Keys: callertest.Keys(t, "auth", caller.Gateway, "payments"), Logger: logger},
		servicejwt.Operations(o.Verifier)...)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	client := func(process string) *remote.Client {
		c := remote.New(
			remote.Options{
				Service:   "auth",
				Instancer: sd.FixedInstancer{strings.TrimPrefix(server.URL, "http://")},
				Keys:      callertest.Keys(t, process),
				Logger:    logger,
				Patience:  hubtest.Patience,
			},
		)
		t.Cleanup(c.Close)
		return c
	}
	verify := remote.Operation[servicejwt.VerifyRequest, servicejwt.VerifyResponse]{Path: servicejwt.VerifyPath}
	admit := remote.Operation[servicejwt.AdmitRequest, servicejwt.AdmitResponse]{Path: servicejwt.AdmitPath}
	gateway := client(caller.Gateway)
	token := sign(o.secret.Token.Reveal(), hs256, o.claims(nil))
	v, err := verify.Call(t.Context(), gateway, servicejwt.VerifyRequest{Token: token})
	if err != nil || v.ServiceCode != "shop" || v.Subject != "u-77" || v.ID != "j-1" || v.ExpiresAt != o.clock.Now().Unix()+300 ||
		v.Status != "ACTIVE" ||
		v.Limits.UserBurst != 60 ||
		len(v.Scopes) != 2 {
		t.Fatalf("%+v %v", v, err)
	}
	ask := servicejwt.AdmitRequest{ServiceCode: v.ServiceCode, Subject: v.Subject, ID: v.ID, ExpiresAt: v.ExpiresAt, Linked: true}
	for name, err := range map[string]error{
		"to verify for another": func() error {
			_, err := verify.Call(caller.Alone(t.Context(), "payments"), client("payments"), servicejwt.VerifyRequest{Token: token})
			return err
		}(),
		"to admit for another": func() error {
			_, err := admit.Call(caller.Alone(t.Context(), "payments"), client("payments"), ask)
			return err
		}(),
	} {
		if err == nil {
			t.Error(name)
		}
	}
	a, err := admit.Call(t.Context(), gateway, ask)
	if err != nil || a.HubUser != "usr_1" || a.ServiceCode != "shop" || a.Subject != "u-77" || len(a.Scopes) != 2 || a.Reason != "" ||
		a.ExpiresAt != nil {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := admit.Call(t.Context(), gateway, ask); !fault.Is(err, fault.AuthInvalid) {
		t.Errorf("again: %v", err)
	}
	if _, err := verify.Call(
		t.Context(),
		gateway,
		servicejwt.VerifyRequest{Token: token + "x"},
	); !fault.Is(err, fault.AuthInvalid) ||
		fault.From(err).Message != generic {
		t.Errorf("%v", err)
	}
	if log := o.log.String(); strings.Contains(log, token) || strings.Contains(log, o.secret.Token.Reveal()) {
		t.Errorf("the log: %s", log)
	}
}
