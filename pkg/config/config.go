// Package config reads a process's settings from the environment, once, at its
// start. It refuses files of its own and reloading: what runs is what was logged.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"hub.internal/pkg/text"
)

// Secret is a setting that never shows in a log line or an error.
type Secret = text.Secret

// Load fills a struct of `env:"NAME"` fields (`envDefault` gives a default, `required`
// makes it one) from environ, which has the form of os.Environ. NAME_FILE names a file that holds NAME, for
// secrets that are mounted; its trailing line break is dropped. The error is one
// line that names the setting.
func Load[C any](environ []string) (C, error) {
	var c C
	values := env.ToMap(environ)
	if err := readFiles(values); err != nil {
		return c, err
	}
	if err := env.ParseWithOptions(&c, env.Options{Environment: values}); err != nil {
		return c, fmt.Errorf("configuration: %s", oneLine(err, reflect.TypeFor[C]()))
	}
	if name := splitPassword(reflect.ValueOf(c)); name != "" {
		return c, fmt.Errorf("configuration: %s: percent-encode the password", name)
	}
	return c, nil
}

func readFiles(values map[string]string) error {
	for name, path := range values {
		setting, isFile := strings.CutSuffix(name, "_FILE")
		if !isFile || !strings.HasPrefix(name, "HUB_") || path == "" {
			continue
		}
		if values[setting] != "" {
			return fmt.Errorf("configuration: both %s and %s are set", setting, name)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("configuration: %s: %w", name, err)
		}
		values[setting] = strings.TrimRight(string(b), "\r\n")
	}
	return nil
}

// oneLine lists what is wrong, by the names of the settings: the library names the
// fields that they are read into.
func oneLine(err error, settings reflect.Type) string {
	problems := []error{err}
	var all env.AggregateError
	if errors.As(err, &all) {
		problems = all.Errors
	}
	texts := make([]string, len(problems))
	for i, problem := range problems {
		texts[i] = problem.Error()
		var parse env.ParseError
		if errors.As(problem, &parse) {
			texts[i] = fmt.Sprintf("%s: %v", settingOf(parse.Name, settings), parse.Err)
		}
	}
	return text.OneLine(strings.Join(texts, "; "))
}

func settingOf(field string, settings reflect.Type) string {
	if f, ok := settings.FieldByName(field); ok {
		if name, _, _ := strings.Cut(f.Tag.Get("env"), ","); name != "" {
			return name
		}
	}
	return field
}

// LogValue is the effective configuration, by setting, with secrets masked.
func LogValue(c any) slog.Value {
	var attrs []slog.Attr
	collect(reflect.ValueOf(c), &attrs)
	return slog.GroupValue(attrs...)
}

func collect(v reflect.Value, attrs *[]slog.Attr) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous {
			collect(v.Field(i), attrs)
			continue
		}
		if name, _, _ := strings.Cut(field.Tag.Get("env"), ","); name != "" {
			value := v.Field(i).Interface()
			if d, ok := value.(time.Duration); ok {
				value = d.String()
			}
			*attrs = append(*attrs, slog.Any(name, value))
		}
	}
}
