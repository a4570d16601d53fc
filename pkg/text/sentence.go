package text

import "strings"

// FirstSentence is a text up to its first full stop that a space follows, or all of it. Lists show it of a description.
func FirstSentence(s string) string {
	for i := range len(s) {
		// "WITH ... SELECT" is no end of a sentence.
		if strings.HasPrefix(s[i:], ". ") && !strings.HasSuffix(s[:i], ".") {
			return s[:i+1]
		}
	}
	return s
}
