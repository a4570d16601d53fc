// Package e2e runs the real processes together: it builds the services, starts them over real
// servers, and looks at them as an agent does, and as a person does with a browser. It is tests
// only, and the one module that may import siblings.
package e2e
