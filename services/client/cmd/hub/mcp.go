package main

// hub mcp is for clients of MCP that know no HTTP: package stdio carries their lines.

import (
	"log/slog"

	"github.com/spf13/cobra"

	"hub.internal/services/client"
	"hub.internal/services/client/stdio"
)

// mcpCommand serves the tools to a client that starts this program.
// Each line is a message of JSON-RPC 2.0. A signal ends it with code 0 or with that of the signal, as interrupted says.
func mcpCommand(h *hub) *cobra.Command {
	return &cobra.Command{
		Use: "mcp", Short: "Serve the tools over MCP on standard input and output", Args: cobra.NoArgs,
		Long: "Serve the tools of the gateway to a client of the Model Context Protocol that starts this program (the stdio transport).\n" +
			"HUB_URL names the gateway, HUB_API_KEY holds the key; without them it is what hub login keeps. It ends when its input does.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := h.connect()
			if err != nil {
				return err
			}
			return bridge(cmd, c).Run(cmd.Context(), h.in, h.out)
		},
	}
}

// bridge carries the messages with the HTTP client of all commands, which follows no redirect. Its log goes to standard error, since
// standard output is the protocol's.
func bridge(cmd *cobra.Command, c *client.Client) *stdio.Bridge {
	return &stdio.Bridge{URL: c.URL, Key: c.Key, Client: c.HTTP, Log: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))}
}
