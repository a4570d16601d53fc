package postgres

import "strings"

var likePattern = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// LikePattern is s as the pattern of a LIKE or ILIKE that stands for itself: the characters that mean something there are escaped, by
// the backslash that PostgreSQL takes for that unless a statement says otherwise.
func LikePattern(s string) string { return likePattern.Replace(s) }
