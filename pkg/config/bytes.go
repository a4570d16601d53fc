package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a number of bytes, written with a unit: 512MiB, 1GiB, 16KiB, 4096.
type Bytes int64

// units from the greatest. Powers of 1024 only: a memory limit in powers of ten would be
// read as more than it is by whoever means the others.
var units = []struct {
	name string
	size Bytes
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// UnmarshalText reads a whole number of bytes with its unit; without one it is bytes.
func (b *Bytes) UnmarshalText(text []byte) error {
	digits, unit := strings.TrimSpace(string(text)), Bytes(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(digits, u.name); ok {
			digits, unit = strings.TrimSpace(rest), u.size
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/int64(unit) {
		return fmt.Errorf("%q is not a size such as 512MiB, 1GiB or 4096", text)
	}
	*b = Bytes(n) * unit
	return nil
}

// MarshalText is the size in the greatest unit that tells it whole.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

func (b Bytes) String() string {
	for _, u := range units {
		if b >= u.size && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}
