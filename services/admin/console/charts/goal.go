package charts

import (
	"math"
	"strings"

	"hub.internal/pkg/web"
	"hub.internal/services/admin"
)

// Goal is a line of a progress section as it is shown.
type Goal struct {
	// Value is how much there is; Share says it as a percentage where that is not the same.
	Label, Value, Share string
	Bar                 web.Bar
}

// Goals lays out a progress section.
func Goals(s admin.Section) []Goal {
	goals := make([]Goal, len(s.Items))
	for n, item := range s.Items {
		value, total := valueOf(item.Value), 100.0
		g := Goal{Label: item.Label, Value: Number(literal(item.Value))}
		unit := "%"
		if s.Unit != nil {
			unit = *s.Unit
		}
		if item.Max == nil {
			g.Value = WithUnit(g.Value, unit)
		} else {
			if s.Unit == nil {
				unit = ""
			}
			total = valueOf(item.Max)
			g.Value += " / " + WithUnit(Number(literal(item.Max)), unit)
		}
		share := value / total
		if math.IsNaN(share) || math.IsInf(share, 0) {
			share = 0
		}
		percent := strings.Replace(Percent(share), ".0 %", " %", 1)
		if item.Max != nil || unit != "%" {
			g.Share = percent
		}
		g.Bar = BarOf(percent, share, 1)
		if share >= 1 {
			g.Bar.Parts[0].Kind = "good"
		}
		goals[n] = g
	}
	return goals
}

// BarOf is a bar of a value by the largest one that there is; one below zero has another colour.
func BarOf(label string, value, largest float64) web.Bar {
	const length = 1000
	p := web.Part{Kind: "info"}
	if value < 0 {
		p.Kind = "bad"
	}
	if largest > 0 {
		p.Count = int(math.Ceil(min(math.Abs(value)/largest, 1) * length))
	}
	return web.Bar{Label: label, Total: length, Parts: []web.Part{p}}
}
