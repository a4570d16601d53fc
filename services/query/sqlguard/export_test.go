package sqlguard

import "hub.internal/services/query/sqlguard/lexer"

// Tokens returns the text between, and of, the tokens of a text that can be
// lexed: gap, token, gap, ..., gap.
func Tokens(text string) ([]string, error) {
	toks, err := lexer.Lex(text)
	if err != nil {
		return nil, err
	}
	pieces, end := make([]string, 0, 2*len(toks)+1), 0
	for _, t := range toks {
		pieces = append(pieces, text[end:t.Start], text[t.Start:t.End])
		end = t.End
	}
	return append(pieces, text[end:]), nil
}

// Functions are the built-in functions on the list that a kind of server has, with their
// families.
func Functions(server string) map[string]string {
	families := map[string]string{}
	for name, f := range readLists().functions {
		if f.servers == "all" || f.servers == server {
			families[name] = f.family
		}
	}
	return families
}

// Known tells what the guard knows a name in front of a parenthesis as: "listed",
// "refused" with a reason, "grammar" or "".
func Known(name string) string {
	l := readLists()
	_, listed := l.functions[name]
	switch {
	case listed:
		return "listed"
	case l.reason(name) != "":
		return "refused"
	case lexer.GrammarWords[name], sized[name]:
		return "grammar"
	}
	return ""
}

// GrammarWords are the words behind which a parenthesis is no call.
func GrammarWords() (words []string) {
	for _, set := range []map[string]bool{lexer.GrammarWords, sized} {
		for word := range set {
			words = append(words, word)
		}
	}
	return words
}

// Text returns the statement as it was given.
func (s Statement) Text() string { return s.text }

// String returns "select", "show" or "explain".
func (k Kind) String() string { return [...]string{"select", "show", "explain"}[k] }
