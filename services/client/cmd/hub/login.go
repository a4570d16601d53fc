package main

// What these commands keep and find is package login's; here is the conversation.

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hub.internal/services/client"
	"hub.internal/services/client/login"
	"hub.internal/services/client/output"
)

const loginLong = `Keep the address of a gateway and an API key for it in a file that you alone can
read. The key is asked for and not shown, tried by one call, and never printed.

A script writes the key to standard input: an argument could be read by others.
Several gateways have a key each; the last one is used unless --url or HUB_URL
names another, and no key is ever sent to an address that it was not kept for.`

// loginCommand is hub login.
// There is no flag for the key itself: arguments are in the list of processes and in the shell's history.
func (h *hub) loginCommand() *cobra.Command {
	var fromStdin bool
	cmd := &cobra.Command{Use: "login", Short: "Keep the address of a gateway and a key for it", Long: loginLong, Args: cobra.NoArgs,
		Example: "  hub login\n  hub login --url https://hub.example.com --key-stdin < key.txt"}
	cmd.Flags().BoolVar(&fromStdin, "key-stdin", false, "read the key from standard input")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return h.login(cmd.Context(), fromStdin) }
	return cmd
}

// login asks for the address and the key, tries the key by asking for the catalog, and keeps both only when the gateway takes it.
// Nothing is stored where the gateway refuses the key or does not answer.
func (h *hub) login(ctx context.Context, fromStdin bool) error {
	if !fromStdin && h.secret == nil {
		return misused("standard input is no terminal to ask for the key on: hub login --url URL --key-stdin < FILE")
	}
	address, err := h.askAddress(ctx, fromStdin)
	if err != nil {
		return err
	}
	key, err := h.askKey(ctx, fromStdin)
	if err != nil {
		return err
	}
	// The key is tried against the address that it will be kept for, by a call that every key may make.
	c := &client.Client{URL: address, Source: "--url", Key: key, Agent: "hub/" + release, HTTP: client.NewHTTP()}
	all, err := h.catalog(ctx, c, "")
	if err != nil {
		return err
	}
	if err := h.sources().Store(address, key); err != nil {
		return err
	}
	h.note("%s takes the key, which may call %d of %d tools; it is kept in %s", address, countAllowed(all), len(all.Tools), h.sources().Path())
	// Whoever logs in expects what was typed to be used from now on.
	for _, name := range []string{"HUB_URL", "HUB_API_KEY", "HUB_API_KEY_FILE"} {
		if h.getenv(name) != "" {
			h.note("note: %s is set, and comes before what is kept", name)
		}
	}
	return nil
}

// askAddress is --url, or what is typed; nothing typed is the address of before.
// An address that cannot be used is E_VALIDATION.
func (h *hub) askAddress(ctx context.Context, fromStdin bool) (string, error) {
	text := h.url
	if text == "" && fromStdin {
		text = h.getenv("HUB_URL")
	}
	if text == "" && fromStdin {
		return "", misused("--key-stdin needs --url, the address of the gateway")
	}
	if text == "" {
		prompt := "Address of the gateway: "
		before, err := h.sources().Address()
		if err == nil {
			prompt = fmt.Sprintf("Address of the gateway (%s): ", before.Value)
		}
		if text, err = h.ask(ctx, prompt); err != nil {
			return "", err
		}
		if text = strings.TrimSpace(text); text == "" {
			text = before.Value
		}
		if text == "" {
			return "", misused("an address is needed, as https://hub.example.com is one")
		}
	}
	address, err := client.Address(text, "the address", h.sources().AllowHTTP)
	if err != nil {
		return "", misused("%v", err)
	}
	return address, nil
}

// askKey reads the key from standard input or from the terminal, which does not show it.
// A key with spaces or control characters in it is E_VALIDATION: it was pasted with something else.
func (h *hub) askKey(ctx context.Context, fromStdin bool) (key string, err error) {
	if fromStdin {
		key, err = readUntilDone(ctx, func() (string, error) { return readLine(h.in) })
	} else {
		key, err = h.secret(ctx, "API key (not shown): ")
	}
	if err != nil {
		return "", err
	}
	if key, err = login.Check(key); err != nil {
		return "", misused("%v", err)
	}
	return key, nil
}

// countAllowed is how many of the tools the key may call.
// A tool that is not allowed needs a scope that the key has not.
func countAllowed(all *client.Catalog) (n int) {
	for _, t := range all.Tools {
		if t.Allowed {
			n++
		}
	}
	return n
}

// logoutCommand is hub logout.
// It asks no gateway, and works without a network.
func (h *hub) logoutCommand() *cobra.Command {
	return &cobra.Command{Use: "logout", Short: "Forget the key of a gateway", Args: cobra.NoArgs,
		Long: "Forget the key that hub login has kept, for --url or for the last gateway. The key itself goes on to be valid: an\n" +
			"administrator revokes it.",
		RunE: func(*cobra.Command, []string) error {
			address := h.url
			if address != "" {
				var err error
				if address, err = client.Address(address, "--url", true); err != nil {
					return misused("%v", err)
				}
			}
			// The address need not be safe to send a key to: nothing is sent.
			gone, err := h.sources().Forget(address)
			switch {
			case err != nil:
				return err
			case gone == "":
				h.note("there is no key to forget")
			default:
				h.note("the key for %s is forgotten here; whoever has it can use it until it is revoked", gone)
			}
			return nil
		}}
}

// whoamiCommand is hub whoami.
// Scopes are read off the tools that are allowed: a scope of no tool is not seen.
func (h *hub) whoamiCommand() *cobra.Command {
	return &cobra.Command{Use: "whoami", Short: "Show which gateway and which key are used", Args: cobra.NoArgs,
		Long: "Show which gateway is asked, where its address and the key were found, and what the key may do. The key is not shown.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, from, err := h.connect()
			if err != nil {
				return err
			}
			all, err := h.catalog(cmd.Context(), c, from)
			if err != nil {
				return err
			}
			var scopes []string
			for _, t := range all.Tools {
				if t.Allowed && !slices.Contains(scopes, t.Scope) {
					scopes = append(scopes, t.Scope)
				}
			}
			slices.Sort(scopes)
			for _, of := range [][2]string{
				{"gateway", fmt.Sprintf("%s (%s), version %s", c.URL, c.Source, all.Version)}, {"key", "of " + from},
				{"scopes", strings.Join(scopes, " ")}, {"tools", fmt.Sprintf("%d of %d", countAllowed(all), len(all.Tools))},
			} {
				fmt.Fprintln(h.out, h.screen.Bold(output.Pad(of[0], 7))+"  "+output.Sanitize(of[1]))
			}
			return nil
		}}
}
