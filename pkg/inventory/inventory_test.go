package inventory

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		`{"services":[{"name":"edge","edge":true,"calls":["back"]},{"name":"back","needs":["store"]}]}`: "",
		`{"services":[]}`:                                                                "the edge",
		`{"services":[{"name":"back"}]}`:                                                 "the edge",
		`{"services":[{"name":"a","edge":true}],"x":1}`:                                  "unknown field",
		`{"services":[{"name":"a","edge":true,"role":"x"}]}`:                             "unknown field",
		`{"services":[{"name":"a","edge":true},{"name":"b","edge":true}]}`:               "second edge",
		`{"services":[{"name":"a","edge":true},{"name":"b"},{"name":"b"}]}`:              "twice",
		`{"services":[{"name":"a","edge":true,"calls":["c"]}]}`:                          "cannot call",
		`{"services":[{"name":"a","edge":true},{"name":"b","calls":["a"]}]}`:             "cannot call",
		`{"services":[{"name":"a","edge":true},{"name":"b","calls":["b"]}]}`:             "cannot call",
		`{"services":[{"name":"a","edge":true,"needs":["luck"]}]}`:                       "luck",
		`{"services":[{"name":"A","edge":true}]}`:                                        "name",
		`{"services":[{"name":"a_b","edge":true}]}`:                                      "name",
		`{"services":[{"name":"../a","edge":true}]}`:                                     "name",
		`{"services":[{"name":"a","edge":true,"acts":["x"]},{"name":"b","acts":["x"]}]}`: "both",
		`{"services":[{"name":"a","edge":true,"acts":["x."]}]}`:                          "act",
		`not JSON`: "invalid",
	} {
		_, err := parse([]byte(text))
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	s := Service{Name: "review-control"}
	if s.Role() != "hub_review_control" || s.Schema() != "review_control" || s.Program() != "./services/review-control/cmd/review-control" {
		t.Errorf("%s %s %s", s.Role(), s.Schema(), s.Program())
	}
}
