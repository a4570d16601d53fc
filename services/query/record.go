package query

import (
	"math/big"
	"strconv"
)

// ID is a primary key of the source: a JSON number, and a string where a number
// would lose digits in a reader that has only doubles (beyond 2^53).
type ID int64

const exact = 1 << 53

// MarshalJSON implements json.Marshaler.
func (id ID) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 22)
	if id >= -exact && id <= exact {
		return strconv.AppendInt(b, int64(id), 10), nil
	}
	b = strconv.AppendInt(append(b, '"'), int64(id), 10)
	return append(b, '"'), nil
}

// DateTime is a DATETIME of the source as it stands there: 2026-01-31T09:00:00,
// without a zone.
type DateTime string

// ratio is part/whole with six decimals, half away from zero; null without a whole.
func ratio(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	r, _ := strconv.ParseFloat(big.NewRat(part, whole).FloatString(6), 64)
	return &r
}
