package triage

import (
	"fmt"
	"strings"

	"hub.internal/pkg/tool"
)

// RepeatRule is the rule of the warning of repeats.
const RepeatRule = "draft.repeated"

// mostNamed is how many targets a warning names.
const mostNamed = 3

// Repeats warns of the targets of a draft that repeat an earlier mail: of says each target's address, and what it repeats; empty when
// nothing.
func Repeats(targets int, of func(i int) (email, says string)) []tool.Warning {
	count, first := 0, []string{}
	for i := range targets {
		email, says := of(i)
		if says == "" {
			continue
		}
		if count++; count <= mostNamed {
			first = append(first, fmt.Sprintf("target %d (%.80s: %s)", i, email, says))
		}
	}
	if count == 0 {
		return nil
	}
	more := ""
	if count > mostNamed {
		more = fmt.Sprintf(" and %d more", count-mostNamed)
	}
	return []tool.Warning{{Rule: RepeatRule, Message: fmt.Sprintf("%d of %d targets repeat an earlier mail: %s%s; reviewers see it",
		count, targets, strings.Join(first, ", "), more)}}
}
