package charts

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Share is where a value stands between two others, from 0 to 1: in the middle when they are the same.
func Share(v, low, high float64) float64 {
	// Halves, because the difference of two numbers may be larger than any; of the smallest there are none.
	of := high/2 - low/2
	if !(of > 0) {
		return .5
	}
	return min(max((v/2-low/2)/of, 0), 1)
}

// Point is a corner of a line; a Y that is NaN is a gap.
type Point struct{ X, Y float64 }

// Path is the line through points as the d of a path. A point between gaps is a line of no length, which round caps show.
func Path(points []Point) string {
	var b strings.Builder
	for n, p := range points {
		switch {
		case math.IsNaN(p.Y):
		case n > 0 && !math.IsNaN(points[n-1].Y):
			fmt.Fprintf(&b, "L%.1f,%.1f", p.X, p.Y)
		case n+1 < len(points) && !math.IsNaN(points[n+1].Y):
			fmt.Fprintf(&b, "M%.1f,%.1f", p.X, p.Y)
		default:
			fmt.Fprintf(&b, "M%.1f,%.1fh0", p.X, p.Y)
		}
	}
	return b.String()
}

// Range is the least and the most of the numbers; false without any.
func Range(values ...[]float64) (low, high float64, ok bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, list := range values {
		for _, v := range list {
			if !math.IsNaN(v) {
				low, high, ok = min(low, v), max(high, v), true
			}
		}
	}
	return low, high, ok
}

// axis is what a line chart stands on: from low to high in steps that people count in.
type axis struct {
	low, high, step float64
	// steps is how many there are from low to high.
	steps int
}

// axisOf has room for numbers from low to high, and zero when that is not far.
func axisOf(low, high float64) axis {
	const aim = 5 // steps
	if flat := high-low <= 1e-9*max(math.Abs(low), math.Abs(high)); flat || low > 0 && low < .6*high {
		low = min(low, 0)
	}
	if high < 0 && high > .6*low || high-low <= 1e-9*math.Abs(low) {
		high = max(high, 0)
	}
	if high-low < 1e-12 {
		low, high = min(low, 0), max(high, 1)
	}
	step := (high - low) / aim
	size := math.Pow(10, math.Floor(math.Log10(step)))
	for _, nice := range []float64{1, 2, 2.5, 5, 10} {
		if step <= nice*size*(1+1e-9) {
			step = nice * size
			break
		}
	}
	a := axis{low: math.Floor(low/step) * step, step: step}
	a.steps = max(int(math.Ceil(high/step)-math.Floor(low/step)), 1)
	a.high = a.low + float64(a.steps)*step
	return a
}

// ticks are the texts of the axis from the top down: short ones, because the numbers are in the table.
func (a axis) ticks() []string {
	unit, divisor := "", 1.0
	for _, u := range []struct {
		name string
		from float64
	}{{"M", 1e6}, {"B", 1e9}, {"T", 1e12}} {
		if max(math.Abs(a.low), math.Abs(a.high)) >= u.from {
			unit, divisor = u.name, u.from
		}
	}
	// As many digits as tell the steps apart; 2.5 has one more than 2.
	digits := 0
	for f := a.step / divisor; digits < 12 && math.Abs(f-math.Round(f)) > 1e-9*f; digits++ {
		f *= 10
	}
	texts := make([]string, a.steps+1)
	for n := range texts {
		v := (a.low + float64(a.steps-n)*a.step) / divisor
		texts[n] = Number(strconv.FormatFloat(v+0, 'f', digits, 64)) + unit
		if v == 0 {
			texts[n] = "0"
		}
	}
	return texts
}
