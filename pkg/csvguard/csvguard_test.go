package csvguard_test

import (
	"testing"

	"hub.internal/pkg/csvguard"
)

func TestCell(t *testing.T) {
	for _, text := range []string{"=1+1", "+82", "@SUM(A1)", "-1+cmd", "-", "--1", "-inf", "-0x1p-2", "-5\n", "\t=1", "\rx", "\nx", "＝1",
		"＋1", "－1", "＠x", " =1",
		"\u00a0=1", "\u3000＝1", "\ufeff@x", "\u200b=1", " \t", "-1,000"} {
		if got := csvguard.Cell(text); got != "'"+text || !csvguard.IsFormula(text) {
			t.Errorf("%q became %q", text, got)
		}
	}
	for _, text := range []string{"", " ", "\u200b", "fine", "a=b", " a", "1-2", "5", "-5", " -5", "-5.20", "-.5", "-1e9", "-1.5E-3"} {
		if got := csvguard.Cell(text); got != text || csvguard.IsFormula(text) {
			t.Errorf("%q became %q", text, got)
		}
	}
}
