// Package e2e runs the real processes together: it builds gateway, auth and query, starts
// them over real servers, and looks at them as an agent does. It is tests only, and the one
// module that may import siblings.
package e2e
