package caller

import "slices"

// Rule says whom an operation takes: by the process that presents a call, the kinds of
// principal that it may present. Service stands for that process itself; any other kind is
// somebody whom the gateway has authenticated, presented by the gateway, or shown by a
// service that was called for them. What a rule does not name it refuses; nil takes nobody.
type Rule map[string][]string

// Agents is the rule of a tool: whoever has a credential for the API, at the gateway.
func Agents() Rule { return Rule{Gateway: {Key, App}} }

// Browsers is the rule of a page: users and visitors, at the gateway. Whether a page is for
// users alone is the page's own question.
func Browsers() Rule { return Rule{Gateway: {User, Visitor}} }

// Neighbour is the rule of an operation that one process calls for itself alone.
func Neighbour(process string) Rule { return Rule{process: {Service}} }

func (r Rule) takes(presenter, kind string) bool { return slices.Contains(r[presenter], kind) }
