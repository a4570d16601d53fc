package schema

import "strings"

// Nearest returns the known name that a caller most likely meant by one that does not exist, or "": the same but for case and
// separators, misspelt in a third of its letters at most, or its beginning. Of several alike it is the first.
func Nearest(name string, known []string) string {
	sought := normalized(name)
	if sought == "" || len(sought) > 64 {
		return ""
	}
	best, least := "", max(1, len(sought)/3)+1
	for _, candidate := range known {
		k := normalized(candidate)
		d := distance(sought, k)
		if min(len(sought), len(k)) >= 4 && (strings.HasPrefix(k, sought) || strings.HasPrefix(sought, k)) {
			d = min(d, 2) // category for categoryId, but categoryName for categoryName
		}
		if d < least && d < len(k) {
			best, least = candidate, d
		}
	}
	return best
}

// otherwise says what an input has for a member that other interfaces know, and this one under another name or not at all; "" for none.
func otherwise(name string, has map[string]*member) string {
	for _, o := range []struct{ names, has, hint string }{
		{" page pageno pagenumber pageindex ", "offset", "pages are asked for by offset, which is limit × the pages before."},
		{" size pagesize perpage count top max maxresults rows first ", "limit", "did you mean limit?"},
		{" query q search searchterm term text name ", "keyword", "did you mean keyword?"},
		{" query q statement text code ", "sql", "did you mean sql?"},
		{" sort sortby order orderby sortorder direction ", "offset", "the order is fixed, as the tool describes it."},
		{" filter filters where criteria conditions ", "limit", "each condition is a member of the input itself."},
	} {
		if strings.Contains(o.names, " "+normalized(name)+" ") && has[o.has] != nil {
			return o.hint
		}
	}
	return ""
}

// meantBy asks whether a name was meant; "" of none.
func meantBy(nearest string) string {
	if nearest == "" {
		return ""
	}
	return "did you mean " + nearest + "?"
}

// normalized is a name without what people write differently.
func normalized(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// distance is how many letters of a are to be changed, added, left out or swapped with the next for b (optimal string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
