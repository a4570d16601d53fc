package table

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"hub.internal/services/admin/console/charts"
)

const (
	// width and height are those of a drawn series, edge is free around it.
	width, height, edge = 120.0, 28.0, 3.0
	// maxPoints is how many points are drawn; of more, evenly chosen ones.
	maxPoints = 120
)

// Series is a list of numbers that is drawn as a line.
type Series struct{ values []float64 }

// NewSeries is the line of values, of which those that are no number are gaps; nil for fewer than two numbers.
func NewSeries(values []float64) *Series {
	numbers := 0
	for _, v := range values {
		if !math.IsNaN(v) {
			numbers++
		}
	}
	if numbers < 2 {
		return nil
	}
	return &Series{values}
}

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

// figure is a value as people read it.
func figure(v float64) string { return charts.Number(strconv.FormatFloat(v, 'g', -1, 64)) }

// Count is how many values there are, the gaps among them.
func (s *Series) Count() int { return len(s.values) }

// Low is the least of the values.
func (s *Series) Low() string {
	low, _, _ := charts.Range(s.values)
	return figure(low)
}

// High is the largest of the values.
func (s *Series) High() string {
	_, high, _ := charts.Range(s.values)
	return figure(high)
}

// First is the oldest value that is there.
func (s *Series) First() string {
	return figure(s.values[slices.IndexFunc(s.values, func(v float64) bool { return !math.IsNaN(v) })])
}

// Last is the newest value that is there.
func (s *Series) Last() string { return figure(s.newest()) }

func (s *Series) newest() float64 { return s.values[s.last()] }

// last is where that stands.
func (s *Series) last() int {
	n := len(s.values) - 1
	for n > 0 && math.IsNaN(s.values[n]) {
		n--
	}
	return n
}

// Path is the line, for a drawing of 120 by 28.
func (s *Series) Path() string {
	// Of a long series evenly chosen ones are drawn, the first and the last among them.
	n := min(len(s.values), maxPoints)
	points := make([]charts.Point, n)
	for i := range n {
		points[i] = s.at(i * (len(s.values) - 1) / max(n-1, 1))
	}
	return charts.Path(points)
}

// at is where a value is drawn.
func (s *Series) at(n int) charts.Point {
	low, high, _ := charts.Range(s.values)
	across := charts.Share(float64(n), 0, float64(len(s.values)-1))
	return charts.Point{X: edge + across*(width-2*edge), Y: height - edge - charts.Share(s.values[n], low, high)*(height-2*edge)}
}

// End is the last point.
func (s *Series) End() (point struct{ X, Y string }) {
	p := s.at(s.last())
	point.X, point.Y = fmt.Sprintf("%.1f", p.X), fmt.Sprintf("%.1f", p.Y)
	return point
}
