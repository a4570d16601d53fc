package tool

import "encoding/json"

// Manifest is what a service tells the gateway: the tools and the routes of the API that it owns,
// and the part of the console that it serves.
type Manifest struct {
	Service string  `json:"service"`
	Tools   []Spec  `json:"tools"`
	Console []Route `json:"console,omitempty"`
	// Operations are what the service does for its neighbours.
	Operations []OperationSpec `json:"operations,omitempty"`
	// Routes are the service's part of the API below /v1/.
	Routes []RouteSpec `json:"routes,omitempty"`
	// Notifications are the messages that the service sends to Connected Apps.
	Notifications *Notifications `json:"notifications,omitempty"`
}

// Notifications are messages to the addresses of apps, signed as Standard Webhooks says.
type Notifications struct {
	Types []NotificationType `json:"types"`
	// Body is the schema of all of them; its member type tells which one it is.
	Body json.RawMessage `json:"body_schema"`
	// Example is one of them, of the first type.
	Example json.RawMessage `json:"example,omitempty"`
}

// NotificationType is a kind of message. When says what has happened.
type NotificationType struct {
	Type string `json:"type"`
	When string `json:"when"`
}

// OperationSpec is what an operation between services says of itself: tests hold the neighbours'
// clients and fakes to it.
type OperationSpec struct {
	Path string `json:"path"`
	// Callers are the processes that may call it.
	Callers []string        `json:"callers"`
	Input   json.RawMessage `json:"input_schema"`
	Output  json.RawMessage `json:"output_schema"`
}

// Route is a part of the console: every path that is Prefix or lies below it. Of two
// routes that hold a path the longer one has it.
type Route struct {
	Prefix string `json:"prefix"`
	// Role is what a user has to be; empty lets every signed-in user in.
	Role string `json:"role,omitempty"`
	// Public routes need no session: they protect themselves.
	Public bool `json:"public,omitempty"`
	// Tab and Title, when set, list the prefix in the navigation of those who may see it,
	// by Position within the tab.
	Tab      string `json:"tab,omitempty"`
	Title    string `json:"title,omitempty"`
	Position int    `json:"position,omitempty"`
}

// Catalog is deploy/catalog.json: the manifests that a gateway boots from before it
// has heard of any service. It is derived from the services and committed.
type Catalog struct {
	Manifests []Manifest `json:"manifests"`
	// Acts are the words that names in the audit log begin with, before a dot, which are no tools: each with the service that
	// records them.
	Acts map[string]string `json:"acts,omitempty"`
}
