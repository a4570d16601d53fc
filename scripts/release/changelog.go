package main

import (
	"fmt"
	"regexp"
	"strings"
)

var heading = regexp.MustCompile(`^## \[(Unreleased|\d+\.\d+\.\d+)\](?: - (\d{4}-\d{2}-\d{2}))?$`)

// chapter is what a CHANGELOG says of one version.
// date is as it is written, 2026-01-31, and empty for what is not released; text is without the heading.
type chapter struct{ version, date, text string }

// chapters reads a CHANGELOG as https://keepachangelog.com/en/1.1.0 has it: a heading for each version, the newest first, with its
// date; what is not released yet comes before all.
func chapters(text string) ([]chapter, error) {
	var list []chapter
	for number, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "## ") {
			m := heading.FindStringSubmatch(line)
			if m == nil || (m[1] == "Unreleased") != (m[2] == "") {
				return nil, fmt.Errorf("line %d: %q is neither `## [Unreleased]` nor `## [1.2.3] - 2026-01-31`", number+1, line)
			}
			list = append(list, chapter{version: m[1], date: m[2]})
		} else if len(list) > 0 {
			list[len(list)-1].text += line + "\n"
		}
	}
	for i, c := range list {
		if c.version == "Unreleased" && i > 0 {
			return nil, fmt.Errorf("[Unreleased] is not the first")
		}
		if list[i].text = strings.TrimSpace(c.text); list[i].text == "" && c.version != "Unreleased" {
			return nil, fmt.Errorf("[%s] says nothing", c.version)
		}
	}
	return list, nil
}
