package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// span is a flag's duration that also knows days.
type span time.Duration

func (s *span) Type() string { return "duration" }

func (s *span) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

func (s *span) Set(text string) error {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return errors.New("use days, hours or minutes, such as 90d, 36h or 30m")
		}
		*s = span(n) * span(24*time.Hour)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("use days, hours or minutes, such as 90d, 36h or 30m")
	}
	*s = span(d)
	return nil
}

func need(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
}
