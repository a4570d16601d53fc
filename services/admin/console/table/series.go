package table

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	// width and height are those of a drawn series, edge is free around it.
	width, height, edge = 120.0, 28.0, 3.0
	// maxPoints is how many points are drawn; of more, evenly chosen ones.
	maxPoints = 120
)

// Series is a list of numbers that is drawn as a line.
type Series struct{ values []float64 }

// seriesOf is nil unless the list has two numbers or more, and nothing else.
func seriesOf(list []json.RawMessage) *Series {
	if len(list) < 2 {
		return nil
	}
	s := &Series{make([]float64, len(list))}
	for n, raw := range list {
		// ParseFloat reads inf and hexadecimals, too, but JSON has neither.
		v, err := strconv.ParseFloat(strings.TrimSpace(string(raw)), 64)
		if err != nil || math.IsInf(v, 0) || math.IsNaN(v) || raw[0] == '"' {
			return nil
		}
		s.values[n] = v
	}
	return s
}

// Label says in words what is drawn.
func (s *Series) Label() string {
	show := func(v float64) string { return Number(strconv.FormatFloat(v, 'g', -1, 64)) }
	return fmt.Sprintf("%d values from %s to %s: first %s, last %s", len(s.values), show(slices.Min(s.values)), show(slices.Max(s.values)),
		show(s.values[0]), show(s.Last()))
}

// Last is the newest value.
func (s *Series) Last() float64 { return s.values[len(s.values)-1] }

// Points are the corners of the line, for a drawing of 120 by 28.
func (s *Series) Points() string {
	low, high := slices.Min(s.values), slices.Max(s.values)
	// Of a long series evenly chosen ones are drawn, the first and the last among them.
	n := min(len(s.values), maxPoints)
	points := make([]string, n)
	for i := range n {
		v := s.values[i*(len(s.values)-1)/(n-1)]
		y := height / 2
		if high > low {
			// Halves, because the difference of two numbers may be larger than any.
			y = height - edge - (v/2-low/2)/(high/2-low/2)*(height-2*edge)
		}
		points[i] = fmt.Sprintf("%.1f,%.1f", edge+float64(i)/float64(n-1)*(width-2*edge), y)
	}
	return strings.Join(points, " ")
}

// End is the last point.
func (s *Series) End() (point struct{ X, Y string }) {
	points := s.Points()
	point.X, point.Y, _ = strings.Cut(points[strings.LastIndexByte(points, ' ')+1:], ",")
	return point
}
