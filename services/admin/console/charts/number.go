// Package charts shows numbers: as people read them, and drawn as bars and lines. It draws SVG without scripts and
// without a style of its own, so that the page's colours hold by day and by night. It refuses no number: what cannot be
// drawn is a gap.
package charts

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"hub.internal/pkg/text"
	"hub.internal/pkg/web"
	"hub.internal/services/admin"
)

// Number is a JSON number, or decimal text, as people read it: 12,345.5. Of fractions six digits stay.
func Number(literal string) string {
	if strings.ContainsAny(literal, "eE") {
		f, err := strconv.ParseFloat(literal, 64)
		if size := math.Abs(f); err != nil || size >= 1e15 || size < 1e-6 && size > 0 {
			return text.Shorten(literal, 40)
		}
		literal = strconv.FormatFloat(f, 'f', -1, 64)
	}
	whole, fraction, _ := strings.Cut(literal, ".")
	if len(fraction) > 6 {
		if f, err := strconv.ParseFloat(literal, 64); err == nil && math.Abs(f) < 1e9 {
			whole, fraction, _ = strings.Cut(strconv.FormatFloat(f, 'f', 6, 64), ".")
			fraction = strings.TrimRight(fraction, "0")
		}
	}
	if len(whole) > 40 {
		return text.Shorten(literal, 40)
	}
	if whole = web.Number(whole); fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

// Percent is a share as a percentage: 0.3248 is 32.5 %. What is there is never 0 %.
func Percent(share float64) string {
	p := share * 100
	if math.Abs(p) < .05 && p != 0 {
		return Number(strconv.FormatFloat(p, 'g', 2, 64)) + " %"
	}
	return Number(strconv.FormatFloat(p, 'f', 1, 64)) + " %"
}

// before are the units that stand before their number.
const before = "₩$€£¥"

// WithUnit is a number with its unit: 1,200 원, -₩1,200.
func WithUnit(number, unit string) string {
	switch {
	case unit == "":
		return number
	case strings.Contains(before, unit):
		bare, negative := strings.CutPrefix(number, "-")
		if negative {
			return "-" + unit + bare
		}
		return unit + number
	}
	return number + " " + unit
}

// most bounds what is drawn, in both directions: sums and differences of such numbers are numbers.
const most = 1e15

// valueOf is a number of a chart, NaN for a gap.
func valueOf(raw json.RawMessage) float64 {
	f, ok := admin.Number(raw)
	if !ok || math.Abs(f) > most {
		return math.NaN()
	}
	return f
}
