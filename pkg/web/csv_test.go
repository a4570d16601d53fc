package web_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hub.internal/pkg/web"
)

// TestExport: a file that ends early does not look whole, and one that has not begun is an error's page.
func TestExport(t *testing.T) {
	t.Parallel()
	sorry := errors.New("sorry")
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	w := httptest.NewRecorder()
	err := web.Export(w, r, "name", []string{"a", "b"}, func(row func(...string) error) error { return row("1", "=x") })
	if err != nil || w.Body.String() != "a,b\n1,'=x\n" || w.Header().Get("Content-Disposition") != `attachment; filename="name.csv"` {
		t.Errorf("%v %q %v", err, w.Body, w.Header())
	}
	w = httptest.NewRecorder()
	err = web.Export(w, r, "name", []string{"a"}, func(func(...string) error) error { return sorry })
	if !errors.Is(err, sorry) || w.Body.Len() > 0 || w.Header().Get("Content-Disposition") != "" {
		t.Errorf("%v %q %v", err, w.Body, w.Header())
	}
	defer func() {
		if p, ok := recover().(error); !ok || !errors.Is(p, http.ErrAbortHandler) {
			t.Errorf("%v", p)
		}
	}()
	_ = web.Export(httptest.NewRecorder(), r, "name", []string{"a"}, func(row func(...string) error) error {
		return errors.Join(row(strings.Repeat("x", 10)), sorry)
	})
}
