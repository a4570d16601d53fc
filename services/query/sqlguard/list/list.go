// Package list reads the lists of names that the SQL guard goes by. They are data: text files in which a line that begins
// with # is a comment.
package list

import "strings"

// Lines yields the lines that are neither empty nor comments, without white space around them.
func Lines(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line != "" && line[0] != '#' && !yield(line) {
				return
			}
		}
	}
}

// Words is the set of all words, in upper case.
func Words(text string) map[string]bool {
	set := map[string]bool{}
	for line := range Lines(text) {
		for word := range strings.FieldsSeq(strings.ToUpper(line)) {
			set[word] = true
		}
	}
	return set
}

// Reasons are by name, of lines such as "NAME OTHER: why".
func Reasons(text string) map[string]string {
	all := map[string]string{}
	for line := range Lines(text) {
		names, why, _ := strings.Cut(line, ": ")
		for name := range strings.FieldsSeq(names) {
			all[name] = why
		}
	}
	return all
}
