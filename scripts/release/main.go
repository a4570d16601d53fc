// Command release makes what a service is released as: its program, its image, its bill of materials, and the tag. The client
// (services/client) is released in the same way, without an image. Run it at the root of the repository; make image, make sbom and
// make release do.
//
//	go run ./scripts/release image query             the image hub/query:dev of the working tree; with --archive, a file of it
//	go run ./scripts/release sbom query              the bill of materials of the same program
//	go run ./scripts/release cut query v1.2.3        everything that a release needs, and the tag services/query/v1.2.3
//	go run ./scripts/release digest query v1.2.3     the SHA-256 of the program that the tag's files make
//	go run ./scripts/release licences                whether all programs use only what they may
//
// What it makes lies in bin/release/SERVICE: root/out, the files of the image, or the client's program hub, and sbom.cdx.json. It
// pushes nothing.
package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"hub.internal/pkg/inventory"
	"hub.internal/scripts/program"
)

func main() { program.Main(root()) }

// root is the command with its sub-commands: one for each thing that is made of a service.
func root() *cobra.Command {
	c := &cobra.Command{Use: "release", Short: "Make what a service is released as"}
	c.AddCommand(imageCommand(),
		&cobra.Command{Use: "sbom SERVICE", Short: "Write the bill of materials of one service's program", Args: cobra.ExactArgs(1),
			RunE: func(c *cobra.Command, args []string) error {
				e, err := working(c.Context(), args[0])
				if err != nil {
					return err
				}
				if err := e.layOut(c.Context()); err != nil {
					return err
				}
				return makeBill(c.Context(), e, c.OutOrStdout())
			}},
		&cobra.Command{Use: "licences", Short: "Check the licences of the modules that services are made of", Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error { return licences(c.Context(), ".", c.OutOrStdout()) }},
		&cobra.Command{Use: "digest SERVICE VERSION", Short: "Build what was released again, and print its SHA-256", Args: cobra.ExactArgs(2),
			RunE: func(c *cobra.Command, args []string) error {
				sum, err := repository{root: "."}.rebuild(c.Context(), edition{service: args[0], version: args[1]}, "services/"+args[0]+"/"+args[1])
				if err == nil {
					fmt.Fprintln(c.OutOrStdout(), sum)
				}
				return err
			}},
		&cobra.Command{Use: "cut SERVICE VERSION", Short: "Check, build and tag a release of one service", Args: cobra.ExactArgs(2),
			RunE: func(c *cobra.Command, args []string) error {
				return cut(c.Context(), args[0], args[1], c.OutOrStdout(), c.ErrOrStderr())
			}})
	return c
}

// imageCommand is the command behind make image.
func imageCommand() *cobra.Command {
	var archive string
	c := &cobra.Command{Use: "image SERVICE", Short: "Build the image of one service from the working tree", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := working(c.Context(), args[0])
			if err != nil {
				return err
			}
			if !e.deployed() {
				return fmt.Errorf("the %s has no image: make up builds %s as bin/%s", e.service, inventory.ClientProgram, filepath.Base(e.program()))
			}
			return makeImage(c.Context(), e, archive, c.OutOrStdout(), c.ErrOrStderr())
		}}
	c.Flags().StringVar(&archive, "archive", "", "also write the image, in docker's format, to this `FILE` in place of one that is there")
	return c
}

// working is the edition of what lies in the working tree.
func working(ctx context.Context, service string) (edition, error) {
	r := repository{root: "."}
	if err := r.knows(service); err != nil {
		return edition{}, err
	}
	return r.edition(ctx, service, inventory.Development)
}

// makeImage makes the image, and a file of it where archive names one.
func makeImage(ctx context.Context, e edition, archive string, out, progress io.Writer) error {
	builder, err := findBuilder(ctx)
	if err != nil {
		return err
	}
	if err := e.layOut(ctx); err != nil {
		return err
	}
	sum, err := program.Digest(e.program())
	if err != nil {
		return err
	}
	if err := builder.image(ctx, e, progress); err != nil {
		return err
	}
	fmt.Fprintf(out, "made %s with %s; its program is sha256:%s\n", e.image(), builder.name, sum)
	if archive == "" {
		return nil
	}
	if err := builder.archive(ctx, e, archive, progress); err != nil {
		return err
	}
	fmt.Fprintf(out, "wrote it to %s\n", archive)
	return nil
}

// makeBill checks licences, checksums and known vulnerabilities, then writes the bill of materials. A licence that
// is not permitted, or unknown, is an error.
// The checks come first, so that no bill is there for a program that may not be released.
func makeBill(ctx context.Context, e edition, out io.Writer) error {
	used, err := modules(ctx, e.root, e.service)
	if err != nil {
		return err
	}
	if err := allowed(used); err != nil {
		return err
	}
	if err := checkModules(ctx, e, out); err != nil {
		return err
	}
	path := filepath.Join(e.dir(), "sbom.cdx.json")
	n, err := writeBill(e, used, path)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %d components\n", path, n)
	return nil
}
