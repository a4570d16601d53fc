package reference

import (
	"embed"
	"strings"
)

// guides are programs that callers copy, each in four languages: servicejwt makes a credential and calls with it, notification
// judges whether what came is from Hub. A test runs each.
//
//go:embed guides
var guides embed.FS

// sample is a program in a language.
type sample struct {
	Language string
	block
}

// samples are the programs of a guide.
func samples(guide string) (list []sample, err error) {
	for _, one := range []struct{ language, name string }{{"Shell", "sh"}, {"Python", "py"}, {"TypeScript", "ts"}, {"Go", "go.txt"}} {
		code, err := guides.ReadFile("guides/" + guide + "." + one.name)
		if err != nil {
			return nil, err
		}
		list = append(list, sample{one.language, block{guide + "-" + one.name[:2], one.language, strings.TrimSuffix(string(code), "\n")}})
	}
	return list, nil
}
