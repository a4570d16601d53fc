// Command check holds kustomize folders, such as an overlay of your own, to the rules that k8s/ is held to:
//
//	go run ./k8s/check --production k8s/overlays/production
//
// It lists what breaks a rule, and objects of kinds that others have added to the API, which no rule judges. It ends with 1 where a rule
// is broken, and with 2 where a folder does not render.
package main

import (
	"flag"
	"fmt"
	"os"

	"hub.internal/k8s/policy"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	root := flags.String("root", ".", "the root of the repository")
	production := flags.Bool("production", false, "hold them to the rules for production too")
	if err := flags.Parse(args); err != nil || flags.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "check [--production] FOLDER…")
		return 2
	}
	programs, err := policy.Load(*root)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	// All folders are judged, so that one run shows everything.
	status := 0
	for _, folder := range flags.Args() {
		m, err := policy.Render(folder)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		for _, o := range m.Others {
			fmt.Printf("%s: not judged: %s %s\n", folder, o.Kind, o.Name)
		}
		for _, v := range policy.Check(m, programs, *production) {
			fmt.Printf("%s: %s\n", folder, v)
			status = 1
		}
	}
	return status
}
