package main

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"hub.internal/services/gateway/mcp/stdio"
)

// mcp serves the tools to a client that starts this program.
func mcp(c *client, in io.Reader) *cobra.Command {
	return &cobra.Command{
		Use: "mcp", Short: "Serve the tools over MCP on standard input and output", Args: cobra.NoArgs,
		Long: "Serve the tools of the gateway to a client of the Model Context Protocol that starts this program (the stdio transport). " +
			"HUB_URL names the gateway, HUB_API_KEY holds the key. It ends when its input does.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			base, key := c.getenv("HUB_URL"), c.getenv("HUB_API_KEY")
			switch u, err := url.Parse(base); {
			case base == "":
				return errors.New("HUB_URL is not set (after make up: . .hub/dev.env)")
			case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
				return errors.New("HUB_URL is no address, as https://hub.example.com is")
			case key == "":
				return errors.New("HUB_API_KEY is not set (after make up: . .hub/dev.env)")
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return bridge(cmd, base, key).Run(ctx, in, c.out)
		},
	}
}

func bridge(cmd *cobra.Command, base, key string) *stdio.Bridge {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 16
	return &stdio.Bridge{URL: base, Key: key, Client: &http.Client{Transport: transport},
		Log: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))}
}
