package markup

import (
	"slices"
	"strings"

	"github.com/tdewolff/parse/v2/css"
)

// familyForm judges the value of <font face>.
// The quotes around names go, because the attribute has none.
func familyForm(value string) (string, bool) {
	list := declarations("x:" + value)
	if len(list) != 1 {
		return "", false
	}
	kept, _ := families(list[0].value)
	return strings.ReplaceAll(kept, "'", ""), kept != ""
}

// families are those of a list of fonts that are made to be read, and whether these are all.
// An example: "Wingdings, 'Segoe UI', sans-serif" is 'segoe ui',sans-serif, and not all.
func families(value []token) (string, bool) {
	var kept []string
	all := true
	var words []string
	end := func() {
		name := strings.Join(words, " ")
		switch {
		case generic[name]:
			kept = append(kept, name)
		case readable(name):
			kept = append(kept, "'"+name+"'")
		default:
			all = false
		}
		words = nil
	}
	for _, t := range value {
		switch t.kind {
		case css.CommaToken:
			end()
		case css.IdentToken:
			words = append(words, t.text)
		case css.StringToken:
			words = append(words, strings.Join(strings.Fields(strings.Trim(t.text, `"'`)), " "))
		default:
			words = append(words, "?")
		}
	}
	end()
	return strings.Join(kept, ","), all
}

// generic are the names that stand for whatever the program has; they are written without quotes.
var generic = setOf("serif", "sans-serif", "monospace", "system-ui", "-apple-system", "blinkmacsystemfont")

// fontFamilies begin the names of fonts for many scripts.
var fontFamilies = []string{"noto sans", "noto serif", "nanum", "source sans", "source serif", "ibm plex sans", "ibm plex serif",
	"apple sd gothic", "spoqa han sans"}

// readable tells of a font whose letters are those of the text: one of symbols or bars shows
// something else to whoever has it.
func readable(name string) bool {
	return fonts[name] || slices.ContainsFunc(fontFamilies, func(family string) bool {
		rest, ok := strings.CutPrefix(name, family)
		letters := strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz 0123456789") == ""
		return ok && letters && !strings.Contains(rest, "symbol") && !strings.Contains(rest, "sign")
	})
}

// fonts are those that are common on desktops and telephones, and Korean, Japanese and Chinese ones.
var fonts = setOf("arial", "arial black", "helvetica", "helvetica neue", "verdana", "tahoma", "geneva", "georgia", "times",
	"times new roman", "courier", "courier new", "trebuchet ms", "lucida grande", "lucida sans", "lucida sans unicode", "segoe ui", "roboto",
	"open sans", "lato", "inter", "montserrat", "poppins", "calibri", "cambria", "candara", "century gothic", "garamond", "palatino",
	"palatino linotype",
	"book antiqua", "consolas", "menlo", "monaco", "ubuntu", "cantarell", "oxygen", "fira sans", "droid sans", "avenir",
	"avenir next", "futura", "optima", "gill sans", "raleway", "nunito", "work sans", "dm sans", "pretendard", "malgun gothic", "맑은 고딕",
	"dotum", "돋움", "gulim", "굴림",
	"batang", "바탕", "gungsuh", "궁서", "나눔고딕", "나눔명조", "hiragino sans", "hiragino kaku gothic pro", "meiryo", "yu gothic", "ms gothic",
	"ms mincho", "pingfang sc", "pingfang tc", "microsoft yahei", "simsun", "simhei", "heiti sc")
