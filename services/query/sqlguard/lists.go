package sqlguard

import (
	_ "embed"
	"strings"

	"hub.internal/services/query/sqlguard/list"
)

// What the guard lets pass by name is data: a file for each list, which says what it is.
var (
	//go:embed lists/functions.txt
	functionsText string
	//go:embed lists/refused.txt
	refusedText string
	//go:embed lists/variables.txt
	variablesText string
	//go:embed lists/tables.txt
	tablesText string
)

// A function is a built-in one that statements may call.
type function struct {
	family  string // such as "text"
	servers string // "all", or the only one that has it
}

// lists are the names that the guard knows, in upper case.
type lists struct {
	functions map[string]function
	reasons   map[string]string // of refused functions; a key that ends in * is a prefix
	variables map[string]bool
	tables    map[string]bool // of information_schema
}

func readLists() lists {
	l := lists{functions: map[string]function{}, reasons: list.Reasons(refusedText), variables: list.Words(variablesText),
		tables: list.Words(tablesText)}
	for line := range list.Lines(functionsText) {
		cells := strings.Fields(line)
		for _, name := range cells[2:] {
			l.functions[name] = function{family: cells[0], servers: cells[1]}
		}
	}
	return l
}

// reason says why a function is refused, "" when the lists do not know it.
func (l lists) reason(name string) string {
	if why, ok := l.reasons[name]; ok {
		return why
	}
	for i := range name {
		if why, ok := l.reasons[name[:i]+"*"]; ok {
			return why
		}
	}
	return ""
}
