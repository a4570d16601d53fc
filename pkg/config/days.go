package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Days is a number of days: 400d.
type Days int

// UnmarshalText reads a whole number of days with its unit.
func (d *Days) UnmarshalText(text []byte) error {
	digits, ok := strings.CutSuffix(strings.TrimSpace(string(text)), "d")
	n, err := strconv.ParseUint(digits, 10, 16)
	if !ok || err != nil {
		return fmt.Errorf("%q is not a number of days such as 400d", text)
	}
	*d = Days(n)
	return nil
}

// MarshalText is the form that UnmarshalText reads.
func (d Days) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d Days) String() string { return strconv.Itoa(int(d)) + "d" }
