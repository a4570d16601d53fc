package admin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"time"
)

// The formats of a column. Without one a cell is shown as what it looks like.
const (
	// Percent shows a share: 0.325 is 32.5 %.
	Percent = "percent"
	// Money shows an amount in won.
	Money = "money"
	// InBar draws a bar beside the number, by the column's largest one.
	InBar = "bar"
	// Sparkline draws a list of numbers as a line.
	Sparkline = "sparkline"
	// Date shows the day of a moment, in the reader's own time.
	Date = "date"
)

// Series is a row of a chart's numbers.
type Series struct {
	Name string `json:"name" jsonschema:"What the values are"`
	// Values are numbers, and null where there is none: one for each label.
	Values []json.RawMessage `json:"values" jsonschema:"A number or null for each label"`
}

// Goal is a line of a progress section: how much of something is done.
type Goal struct {
	Label string          `json:"label" jsonschema:"What it is"`
	Value json.RawMessage `json:"value" jsonschema:"How much there is, a number"`
	// Max is above zero; absent it is 100, and the value a percentage.
	Max json.RawMessage `json:"max,omitempty" jsonschema:"How much there is to be, a number"`
}

// chart judges the labels and the series of a bar or line chart.
func (c *cleaner) chart(at string, in sectionIn) (labels []string, series []Series) {
	labels, series = make([]string, len(in.Labels)), make([]Series, len(in.Series))
	for n, label := range in.Labels {
		labels[n] = c.line(at+"/labels/"+strconv.Itoa(n), label, maxLabel)
	}
	if in.Series != nil && len(in.Series) == 0 {
		c.Add(at+"/series", "minItems", `must have at least one series: {"name": "Orders", "values": [3, null, 5]}`)
	}
	first := map[string]int{}
	for n, raw := range in.Series {
		here := at + "/series/" + strconv.Itoa(n)
		series[n] = c.series(here, raw, len(in.Labels))
		if earlier, twice := first[series[n].Name]; twice && series[n].Name != "" {
			c.Add(here+"/name", "uniqueItems", "is the name of series %d too; write what tells them apart", earlier)
		}
		first[series[n].Name] = n
	}
	return labels, series
}

// series reads one with a value for each of so many labels.
func (c *cleaner) series(at string, raw json.RawMessage, labels int) (out Series) {
	c.record(at, "series", raw, []string{"name", "values"}, nil, func(here, name string, v json.RawMessage) {
		if name == "name" {
			out.Name = c.textOf(here, v, maxLabel)
			return
		}
		if err := json.Unmarshal(v, &out.Values); err != nil || out.Values == nil {
			c.Add(here, "type", "must be a list of numbers, with null where there is none")
			return
		}
		if len(out.Values) != labels {
			c.Add(here, "length", "must have a number or null for each of the %d labels, and has %d values", labels, len(out.Values))
		}
		for n := range out.Values[:min(len(out.Values), maxPoints)] {
			if empty(out.Values[n]) {
				continue
			}
			out.Values[n] = c.number(here+"/"+strconv.Itoa(n), out.Values[n], "a number, or null where there is none")
		}
	})
	return out
}

// goal reads a line of a progress section.
func (c *cleaner) goal(at string, raw json.RawMessage) (out Goal) {
	c.record(at, "progress item", raw, []string{"label", "value"}, []string{"max"}, func(here, name string, v json.RawMessage) {
		switch name {
		case "label":
			out.Label = c.textOf(here, v, maxLabel)
		case "value":
			out.Value = c.number(here, v, "a number")
		case "max":
			out.Max = c.number(here, v, "a number")
			if most, ok := Number(out.Max); ok && most <= 0 {
				c.Add(here, "exclusiveMinimum", "must be above 0: it is how much there is to be")
			}
		}
	})
	return out
}

// number reads one that is drawn; a decimal in quotes, as the source answers them, is one.
func (c *cleaner) number(at string, raw json.RawMessage, want string) json.RawMessage {
	switch f, ok := Number(raw); {
	case !ok:
		c.Add(at, "type", "must be %s", want)
	case math.Abs(f) > maxNumber:
		c.Add(at, "range", "must be from -1e15 to 1e15; write it in a larger unit")
	case len(raw) > maxValue:
		c.Add(at, "maxLength", "must have at most %d digits", maxValue)
	}
	return bytes.Trim(raw, `" `)
}

// decimal is a number as JSON has it.
var decimal = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$`)

// Number is the value of a JSON number, or of a decimal in quotes, as the source answers them. False for all else, and
// for what is beyond a float64.
func Number(raw json.RawMessage) (float64, bool) {
	raw = bytes.TrimSpace(raw)
	if n := len(raw); n > 2 && raw[0] == '"' && raw[n-1] == '"' {
		raw = raw[1 : n-1]
	}
	if !decimal.Match(raw) {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil
}

// Numbers are those of a list, with NaN for null. False for all else, and without a number.
func Numbers(raw json.RawMessage) (values []float64, ok bool) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil, false
	}
	values = make([]float64, len(list))
	some := false
	for n, v := range list {
		if empty(v) {
			values[n] = math.NaN()
			continue
		}
		if values[n], ok = Number(v); !ok {
			return nil, false
		}
		some = true
	}
	return values, some
}

// zoneless is a moment without a zone, as Hub's tools answer those of the source: in UTC.
var zoneless = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?$`)

// DateOf is the day that a text names, or the moment whose day depends on where the reader is; without a zone it is of UTC. False for
// neither.
func DateOf(raw json.RawMessage) (day string, at time.Time, ok bool) {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", at, false
	}
	if _, err := time.Parse(time.DateOnly, s); err == nil {
		return s, at, true
	}
	if m := zoneless.FindStringSubmatch(s); m != nil {
		s = m[1] + "T" + m[2] + cmp.Or(m[3], ":00") + "Z"
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	return "", at, err == nil && !at.IsZero()
}

// fits tells that a cell can be shown in a format; what is absent can in each.
func fits(format string, raw json.RawMessage) (ok bool) {
	if empty(raw) {
		return true
	}
	switch format {
	case Percent, Money, InBar:
		_, ok = Number(raw)
	case Sparkline:
		_, ok = Numbers(raw)
	case Date:
		_, _, ok = DateOf(raw)
	}
	return ok
}

// empty tells that there is nothing: no member, null, or a text of no character.
func empty(raw json.RawMessage) bool {
	v := string(bytes.TrimSpace(raw))
	return v == "" || v == "null" || v == `""`
}
