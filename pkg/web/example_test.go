package web_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"testing/fstest"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/web"
)

// A page says whom it is for where it is registered, hands its data to the layout, and leaves a
// failure to the site.
func ExampleSite_Handle() {
	hubtest.Example(func(t testing.TB) {
		site, err := web.New(
			web.Options{
				Service: "library",
				Keys:    callertest.Keys(t, "library", caller.Gateway),
				Logger:  slog.New(slog.DiscardHandler),
				Files: fstest.MapFS{
					"pages/book.html": {Data: []byte(`{{define "main"}}<p>{{.Data.Title}}: {{template "badge" .Data.State}}</p>{{end}}`)},
				},
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		type book struct {
			Title string
			State web.Badge
		}
		mux := http.NewServeMux()
		site.Handle(mux, "GET /books/{id}", web.Role("librarian"), func(w http.ResponseWriter, r *http.Request) error {
			if r.PathValue("id") != "1" {
				return fault.New(fault.NotFound, "There is no book %s.", r.PathValue("id"))
			}
			return site.Render(
				w,
				r,
				"book",
				web.Page{Title: "A book", Data: book{"Dune & more", web.Badge{Kind: "good", Text: "On the shelf"}}},
			)
		})

		part := regexp.MustCompile(`<p>Dune.*</p>|There is no book 2\.|This page is for users with the role librarian\.`)
		get := func(path string, roles ...string) {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header = callertest.Header(t, "library", caller.Caller{Kind: caller.User, HubUser: "usr_1", Name: "Ada", Roles: roles})
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			fmt.Println(w.Code, part.FindString(w.Body.String()))
		}
		get("/books/1", "librarian")
		get("/books/2", "librarian")
		get("/books/1", "reader")
	})
	// Output:
	// 200 <p>Dune &amp; more: <span class="badge good">On the shelf</span></p>
	// 404 There is no book 2.
	// 403 This page is for users with the role librarian.
}
