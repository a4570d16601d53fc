package tool

import (
	"encoding/json"
	"fmt"
	"io/fs"
)

// Examples reads a tool's executed examples from examples/NAME.json. It panics when they
// are missing or cannot be read: they are embedded, so the program was built wrongly.
func Examples(files fs.FS, name string) []Example {
	b, err := fs.ReadFile(files, "examples/"+name+".json")
	if err != nil {
		panic(fmt.Sprintf("tool %q: %v", name, err))
	}
	var list []Example
	if err := json.Unmarshal(b, &list); err != nil {
		panic(fmt.Sprintf("tool %q: examples: %v", name, err))
	}
	return list
}
