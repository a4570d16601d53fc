// Package triage says what of a mail a reviewer should look at, and which mails of a draft differ in
// nothing but the values of their placeholders. It judges texts alone: it decides nothing, stores
// nothing and knows no other room.
package triage

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Flag is something that a reviewer should look at.
type Flag uint32

// The flags of a mail. Their numbers are stored.
const (
	// Misleading: a link names another host than it leads to.
	Misleading Flag = 1 << iota
	// Removed: something was taken out of what the agent wrote.
	Removed
	// Warned: a look at the mail does not tell all of it.
	Warned
	// Large: it is longer than three screens, or wider than a desk shows it.
	Large
	// Duplicate: another target of the draft has the same address.
	Duplicate
	// Outside: the recipient is not in the segment, so that there is no evidence of them.
	Outside
	// PromptLike: a text in the mail or beside it reads like an instruction to a machine.
	PromptLike
	// Suppressed: the recipient has been put on the suppression list since the draft was queued. It is
	// never stored.
	Suppressed
	// Stray: what stands beside the mail is of somebody else than the recipient's partner.
	Stray
	// Misnamed: the recipient is called otherwise than the contact.
	Misnamed
	// Unfinished: the mail has Markdown, or a text that was to be replaced.
	Unfinished
	// Forged: it is from an address whose provider lets nobody else send for it.
	Forged
	// Repeated: the recipient has had, or is about to have, this very text, or a reviewer has rejected it for them.
	Repeated
	// Recent: the recipient, or another contact of the partner, has had or is about to have another mail.
	Recent
	// Unmarked: its subject does not begin with the mark of the Policy.
	Unmarked
	// NoFooter: its text lacks the footer of the Policy.
	NoFooter
)

// Hints are the flags that are good to know and keep no mail out of what is approved together: a weekly mail to everybody has one on
// each of its mails.
const Hints = Recent

// names are those of the flags in addresses, with what they say of a mail, in the order in which people
// see them.
var names = []struct {
	flag       Flag
	name, says string
}{
	{Misleading, "link", "a link in it names another host than it leads to"},
	{Suppressed, "suppressed", "its recipient is on the suppression list"},
	{Warned, "told", "a look at its preview does not tell all of it"},
	{Unmarked, "mark", "its subject does not begin with the mark that mails have to have here"},
	{NoFooter, "footer", "its text lacks the line that mails have to have here, about opting out for example"},
	{Stray, "context", "what stands beside it is of somebody else than its recipient's partner"},
	{Misnamed, "name", "it calls its recipient otherwise than the contact is called"},
	{Unfinished, "unfinished", "it has Markdown, which is read as it is written, or a text that was to be replaced"},
	{Forged, "sender", "it is from an address of a provider that lets nobody else send for it"},
	{Repeated, "repeated", "its recipient has had this very text, or is about to, or it was rejected before"},
	{PromptLike, "prompt", "a text in it or beside it reads like an instruction to a machine"},
	{Outside, "outside", "its recipient is not in the segment"},
	{Duplicate, "duplicate", "another mail of the draft goes to the same address"},
	{Removed, "removed", "something was taken out of it"},
	{Large, "large", "it is longer than three screens, or wider than a desk shows it"},
	{Recent, "recent", "its recipient or their partner has had another mail lately, or is about to"},
}

// Flags lists all flags, the gravest first.
func Flags() []Flag {
	list := make([]Flag, len(names))
	for i, n := range names {
		list[i] = n.flag
	}
	return list
}

// Has tells whether f holds all of other.
func (f Flag) Has(other Flag) bool { return f&other == other }

// Alone tells that the mail has to be decided on by itself: it has a flag that is more than a hint.
func (f Flag) Alone() bool { return f&^Hints != 0 }

// Each lists the flags that f holds, the gravest first.
func (f Flag) Each() []Flag {
	return slices.DeleteFunc(Flags(), func(one Flag) bool { return !f.Has(one) })
}

// Name is that of a single flag; empty for any other value.
func (f Flag) Name() string {
	for _, n := range names {
		if n.flag == f {
			return n.name
		}
	}
	return ""
}

// Says is what the gravest flag says of a mail, as a part of a sentence; empty without flags.
func (f Flag) Says() string {
	for _, n := range names {
		if f.Has(n.flag) {
			return n.says
		}
	}
	return ""
}

// ParseFlag is the flag of a name, 0 for none.
func ParseFlag(name string) Flag {
	for _, n := range names {
		if n.name == name {
			return n.flag
		}
	}
	return 0
}

// doubted are the flags of what authoring doubts of a mail.
var doubted = map[string]Flag{"context": Stray, "name": Misnamed, "markdown": Unfinished, "unfinished": Unfinished, "sender": Forged,
	"repeated": Repeated, "recent": Recent}

// Doubted are the flags of doubts, by the names that authoring tells them by; a name that is not known is none.
func Doubted(names []string) (f Flag) {
	for _, name := range names {
		f |= doubted[name]
	}
	return f
}

// promptLike finds what is written for a machine that reads the mail, not for its recipient.
var promptLike = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`\b(?:ignore|disregard|forget|override)\b[^.!?\n]{0,40}\b(?:previous|prior|above|earlier|preceding|all|your|any)\b` +
		`[^.!?\n]{0,40}\b(?:instruction|prompt|rule|message|guideline|direction)s?\b`,
	`\b(?:system|developer)\s+(?:prompt|message|instruction)s?\b`,
	`\byou\s+are\s+(?:now\s+)?(?:an?\s+)?(?:ai|a\.i\.|assistant|language\s+model|llm|chatbot|chatgpt|gpt|claude|gemini)\b`,
	`\bas\s+an\s+ai\b`,
	`\b(?:do\s+not|don['’]t)\s+(?:tell|inform|show|mention\s+(?:this|it)\s+to)\s+(?:the\s+)?(?:user|human|reviewer|operator)\b`,
	`\b(?:approve|send)\s+(?:this|these|all)\b[^.!?\n]{0,40}\b(?:without|skip|bypass)\b[^.!?\n]{0,20}\b(?:review|reading|approval|asking)\b`,
	`<\|[a-z_]{2,30}\|>`, `\[/?(?:INST|SYSTEM)\]`, `(?m)^\s*(?:###\s*)?(?:system|assistant)\s*:`,
	`(?:이전|앞의|위의)\s*(?:모든\s*)?(?:지시|명령|프롬프트)[^\n.]{0,20}(?:무시|잊)`,
}, "|"))

// ReadsLikePrompt tells whether a text reads like an instruction to a machine.
func ReadsLikePrompt(text string) bool { return promptLike.MatchString(text) }

// HasPrompt tells whether one of the texts of a JSON value reads like an instruction to a machine.
func HasPrompt(raw json.RawMessage) bool {
	dec := json.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := dec.Token()
		if err != nil {
			return false
		}
		if text, isText := token.(string); isText && ReadsLikePrompt(text) {
			return true
		}
	}
}

// Prompting tells that one of the texts, or one in the JSON values, reads like an instruction to a machine.
func Prompting(texts []string, values ...json.RawMessage) bool {
	return slices.ContainsFunc(texts, ReadsLikePrompt) || slices.ContainsFunc(values, HasPrompt)
}
