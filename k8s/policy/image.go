package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Image is what deploy/Dockerfile says of every service's image.
type Image struct {
	// As the instructions have them: 65532:65532, ["/service"], NAME=value, and ports as texts.
	User        string
	Entrypoint  string
	Environment map[string]string
	Ports       []string
}

var instruction = regexp.MustCompile(`(?m)^(USER|EXPOSE|ENV|ENTRYPOINT)\s+(.+)$`)

// loadImage reads the instructions of deploy/Dockerfile that a pod has to agree with. An error says that one of
// them is missing.
func loadImage(root string) (Image, error) {
	path := filepath.Join(root, "deploy", "Dockerfile")
	b, err := os.ReadFile(path)
	if err != nil {
		return Image{}, err
	}
	i := Image{Environment: map[string]string{}}
	for _, m := range instruction.FindAllStringSubmatch(strings.ReplaceAll(string(b), "\\\n", " "), -1) {
		switch m[1] {
		case "USER":
			i.User = strings.TrimSpace(m[2])
		case "ENTRYPOINT":
			i.Entrypoint = strings.TrimSpace(m[2])
		case "EXPOSE":
			i.Ports = append(i.Ports, strings.Fields(m[2])...)
		case "ENV":
			for _, pair := range strings.Fields(m[2]) {
				name, value, _ := strings.Cut(pair, "=")
				i.Environment[name] = value
			}
		}
	}
	if i.User == "" || i.Entrypoint == "" || len(i.Ports) == 0 {
		return i, fmt.Errorf("%s names no user, entry point or port", path)
	}
	return i, nil
}
