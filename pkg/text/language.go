package text

import "unicode"

// Language is the code of the language whose letters s has: "ko" for Hangul, "ja" for kana. It is "" for any others, which many
// languages share. One letter of five is enough, as names and addresses in Latin letters stand among them.
func Language(s string) string {
	var letters, hangul, kana int
	for _, r := range s {
		switch {
		case r < 0x80 && ('a' > r|0x20 || r|0x20 > 'z'):
			continue
		case unicode.Is(unicode.Hangul, r):
			hangul++
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			kana++
		}
		letters++
	}
	switch {
	case 5*hangul > letters:
		return "ko"
	case 5*kana > letters:
		return "ja"
	}
	return ""
}
