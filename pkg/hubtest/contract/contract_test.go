package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-kit/kit/sd"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
)

type wanted struct {
	ID    string `json:"id"`
	Limit int    `json:"limit,omitempty"`
}

type given struct {
	ID   string  `json:"id"`
	Note *string `json:"note"`
	List []struct {
		Index int             `json:"index"`
		Any   json.RawMessage `json:"any"`
	} `json:"list"`
}

func declared() operation {
	return operation{tool.OperationSpec{Path: "/internal/things/get", Callers: []string{"asker"}}, schema.Of[wanted](), schema.Of[given]()}
}

func client[In, Out any]() remote.Contract {
	return remote.Operation[In, Out]{Path: "/internal/things/get"}.Contract()
}

func TestAClientIsHeld(t *testing.T) {
	type item = struct {
		Index int `json:"index"`
	}
	for name, c := range map[string]struct {
		contract remote.Contract
		want     string
	}{
		"the same types": {client[wanted, given](), ""},
		"less of both": {client[struct {
			ID string `json:"id"`
		}, struct {
			ID string `json:"id"`
		}](), ""},
		"no answer": {client[wanted, struct{}](), ""},
		"null is the zero": {client[wanted, struct {
			Note string `json:"note"`
		}](), ""},
		"anything": {client[any, any](), ""},
		"a number is wider": {client[wanted, struct {
			List []struct {
				Index float64 `json:"index"`
			} `json:"list"`
		}](), ""},
		"items of a list": {client[wanted, struct {
			List []item `json:"list"`
		}](), ""},
		"sent, renamed": {client[struct {
			Ident string `json:"ident"`
		}, given](), "sent/ident is not declared"},
		"sent, missing": {client[struct {
			Limit int `json:"limit"`
		}, given](), "sent/id is required"},
		"sent, maybe missing": {client[struct {
			ID string `json:"id,omitempty"`
		}, given](), "sent/id is required"},
		"sent, another type": {client[struct {
			ID int `json:"id"`
		}, given](), "sent/id is [integer], declared is [string]"},
		"sent, maybe null": {client[struct {
			ID *string `json:"id"`
		}, given](), "sent/id is [null string], declared is [string]"},
		"sent, too wide": {client[struct {
			ID    string  `json:"id"`
			Limit float64 `json:"limit"`
		}, given](), "sent/limit is [number]"},
		"read, renamed": {client[wanted, struct {
			Ident string `json:"ident"`
		}](), "read/ident is not declared"},
		"read, another type": {client[wanted, struct {
			Note []string `json:"note"`
		}](), "read/note is read as [array]"},
		"read, in a list": {client[wanted, struct {
			List []struct {
				Number int `json:"number"`
			} `json:"list"`
		}](), "read/list/*/number is not declared"},
	} {
		problems := strings.Join(declared().client("asker", c.contract), "; ")
		if (problems == "") != (c.want == "") || !strings.Contains(problems, c.want) {
			t.Errorf("%s: %q, want %q", name, problems, c.want)
		}
	}
	if problems := declared().client(
		"somebody",
		client[wanted, given](),
	); len(problems) != 1 ||
		!strings.Contains(problems[0], "[asker] alone") {
		t.Errorf("a caller that it does not take: %q", problems)
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	if _, err := find(root, "owner", "/internal/things/get"); err == nil {
		t.Error("there is no catalog")
	}
	spec := rpc.New(
		rpc.Declaration{Path: "/internal/things/get", Takes: map[string][]string{"asker": {"service"}}},
		func(context.Context, wanted) (given, error) { return given{}, nil },
	).Spec
	b, err := json.Marshal(
		tool.Catalog{Manifests: []tool.Manifest{{Service: "other"}, {Service: "owner", Operations: []tool.OperationSpec{spec}}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "deploy"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "deploy", "catalog.json"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	if o, err := find(root, "owner", spec.Path); err != nil || len(o.client("asker", client[wanted, given]())) > 0 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, c := range [][2]string{{"other", spec.Path}, {"owner", "/internal/things/got"}} {
		if _, err := find(root, c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[1]+" of "+c[0]) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// failures collects what a stand-in says to its test.
type failures struct {
	testing.TB
	list []string
}

func (f *failures) Helper()                      {}
func (f *failures) Errorf(s string, args ...any) { f.list = append(f.list, fmt.Sprintf(s, args...)) }

func TestAStandInIsHeld(t *testing.T) {
	fine := func(context.Context, wanted) (map[string]any, error) {
		return map[string]any{"id": "a", "note": nil, "list": []any{}}, nil
	}
	for name, c := range map[string]struct {
		make func(testing.TB, rpc.Declaration) rpc.Operation
		// asked is the call that is made; without one the stand-in has to fail where it is made.
		asked any
		want  string
	}{
		"as declared":       {of(fine, true), wanted{ID: "a"}, ""},
		"asked for more":    {of(fine, true), map[string]any{"id": "a", "page": 1}, "does not declare"},
		"asked for nothing": {of(fine, true), map[string]any{}, "does not declare"},
		"reads another member": {of(func(context.Context, struct {
			Ident string `json:"ident"`
		}) (given, error) {
			return given{}, nil
		}, true), nil, "read/ident is not declared"},
		"answers too little": {of(func(context.Context, wanted) (struct {
			ID string `json:"id"`
		}, error) {
			return struct {
				ID string `json:"id"`
			}{}, nil
		}, true), nil, "answered/list is required"},
		"answers null": {of(func(context.Context, wanted) (given, error) { return given{}, nil }, true), wanted{ID: "a"},
			"answers what it does not declare"},
		"answers a map": {of(func(context.Context, wanted) (map[string]int, error) { return map[string]int{"id": 1}, nil }, true),
			wanted{ID: "a"}, "answers what it does not declare"},
		"lies on purpose": {of(func(context.Context, wanted) (map[string]int, error) { return map[string]int{"id": 1}, nil }, false),
			wanted{ID: "a"}, ""},
	} {
		told := &failures{TB: t}
		o := c.make(told, rpc.Declaration{Path: "/internal/things/get", Takes: caller.Neighbour("asker")})
		if c.asked != nil && len(told.list) == 0 {
			client := remote.New(
				remote.Options{Service: "owner", Instancer: sd.FixedInstancer{Serve(t, "owner", o)}, Keys: callertest.Keys(t, "asker"),
					Logger: slog.New(slog.DiscardHandler), Patience: hubtest.Patience},
			)
			defer client.Close()
			if _, err := (remote.Operation[any, any]{Path: o.Spec.Path}).Call(t.Context(), client, c.asked); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := strings.Join(told.list, "; "); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	told := &failures{TB: t}
	of(fine, true)(told, rpc.Declaration{Path: "/internal/things/get", Takes: caller.Neighbour("somebody")})
	if len(told.list) != 1 || !strings.Contains(told.list[0], "[asker]") {
		t.Errorf("it takes somebody else: %q", told.list)
	}
}

func of[In, Out any](do func(context.Context, In) (Out, error), honest bool) func(testing.TB, rpc.Declaration) rpc.Operation {
	return func(t testing.TB, d rpc.Declaration) rpc.Operation {
		return standIn(t, declared(), "owner", d, do, honest)
	}
}
