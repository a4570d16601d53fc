package web

import (
	"encoding/csv"
	"fmt"
	"net/http"

	"hub.internal/pkg/csvguard"
)

// csvFlushEvery is after how many rows of an export what there is goes out.
const csvFlushEvery = 1000

// Export streams a file of CSV: its columns, and what rows hands to row, each text harmless to a spreadsheet. An error
// before the first row is returned, for its page; after that the connection breaks, for a file that ends early must not
// look whole. name is that of the file, without its ending.
func Export(w http.ResponseWriter, r *http.Request, name string, columns []string, rows func(row func(cells ...string) error) error) error {
	h := w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s.csv"`, name))
	out, n := csv.NewWriter(w), 0
	flush := func() error {
		out.Flush()
		if err := out.Error(); err != nil {
			return err
		}
		return http.NewResponseController(w).Flush()
	}
	err := out.Write(columns)
	if err == nil {
		err = rows(func(cells ...string) error {
			if n++; n%csvFlushEvery == 0 {
				if err := flush(); err != nil {
					return err
				}
			}
			for i := range cells {
				cells[i] = csvguard.Cell(cells[i])
			}
			return out.Write(cells)
		})
	}
	if err == nil {
		err = flush()
	}
	if err == nil {
		return nil
	}
	if n == 0 && r.Context().Err() == nil {
		h.Del("Content-Disposition")
		return err // nothing has left yet
	}
	panic(http.ErrAbortHandler)
}
