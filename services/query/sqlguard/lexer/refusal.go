package lexer

import "fmt"

// A Refusal is the error of Lex, and of a guard's Parse: a statement that is not on the allow-list.
type Refusal struct {
	Rule    string // names the broken rule, such as "sql.semicolon"
	Message string // says what was found and what to write instead
}

// Error returns the rule and the message.
func (r *Refusal) Error() string { return r.Rule + ": " + r.Message }

// Refuse is a Refusal by the rule, with a message in the format of fmt.Sprintf.
func Refuse(rule, format string, args ...any) error {
	return &Refusal{Rule: rule, Message: fmt.Sprintf(format, args...)}
}
