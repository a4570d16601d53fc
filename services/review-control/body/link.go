package body

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// address is a URL as browsers take it apart. They forgive much that net/url does not.
type address struct {
	scheme string // lower case; empty for a relative address
	user   string // what stands before an @
	host   string // in ASCII
	box    string // the mailbox of a mailto
}

// resolve reads an address; of one that names no host nothing is known.
func resolve(href string) address {
	href = strings.TrimFunc(href, func(r rune) bool { return r <= ' ' })
	href = ignored.Replace(href)
	scheme, rest := splitScheme(href)
	switch scheme {
	case "mailto":
		box, _, _ := strings.Cut(rest, "?")
		box, _, _ = strings.Cut(unescape(box), ",")
		box = strings.TrimSpace(box)
		_, domain, _ := cutLast(box, "@")
		return address{scheme: scheme, box: strings.ToLower(box), host: canonical(domain)}
	case "http", "https", "ftp", "ws", "wss":
		return authority(scheme, strings.TrimLeft(rest, `/\`))
	}
	return address{scheme: scheme}
}

// ignored is what browsers drop from an address.
var ignored = strings.NewReplacer("\t", "", "\n", "", "\r", "")

// splitScheme cuts off what stands before the first colon if that is a scheme.
func splitScheme(href string) (scheme, rest string) {
	for i, c := range href {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		case i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'):
		case i > 0 && c == ':':
			return strings.ToLower(href[:i]), href[i+1:]
		default:
			return "", href
		}
	}
	return "", href
}

// authority reads what follows the slashes: user@host:port and a path.
func authority(scheme, text string) address {
	if end := strings.IndexAny(text, `/\?#`); end >= 0 {
		text = text[:end]
	}
	user, host, found := cutLast(text, "@")
	if !found {
		user, host = "", text
	}
	if strings.HasPrefix(host, "[") {
		host, _, _ = strings.Cut(host, "]")
		return address{scheme: scheme, user: user, host: host + "]"}
	}
	host, _, _ = strings.Cut(host, ":")
	return address{scheme: scheme, user: unescape(user), host: canonical(host)}
}

// cutLast cuts s at the last sep; without one all of it is before.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// unescape resolves the percent-escapes of a text; one with a broken escape stays as it is, as in browsers.
func unescape(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// canonical is a host in ASCII: escapes resolved, full-width letters and dots as the usual
// ones, numbers as the IPv4 address that browsers make of them.
func canonical(host string) string {
	if usual(host) {
		return strings.TrimSuffix(strings.ToLower(host), ".")
	}
	host = unescape(host)
	ascii, err := lookup.ToASCII(host)
	if err != nil {
		ascii = strings.ToLower(host)
	}
	ascii = strings.TrimSuffix(ascii, ".")
	if ip, ok := numericHost(ascii); ok {
		return ip
	}
	return ascii
}

// usual tells a name of ASCII letters and digits that stands for no other form of itself.
func usual(host string) bool {
	for i := range len(host) {
		c := host[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' {
			return false
		}
	}
	last := host[strings.LastIndexByte(strings.TrimSuffix(host, "."), '.')+1:]
	return !strings.Contains(host, "--") && (last == "" || last[0] < '0' || last[0] > '9')
}

// lookup maps a name to ASCII as browsers do (UTS 46, non-transitional).
var lookup = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false))

// numericHost reads 127.1, 0x7f000001 and the like.
func numericHost(host string) (string, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return "", false
	}
	var ip uint64
	for i, part := range parts {
		base := 10
		if hex, ok := strings.CutPrefix(strings.ToLower(part), "0x"); ok {
			part, base = hex, 16
		} else if len(part) > 1 && part[0] == '0' {
			base = 8
		}
		n, err := strconv.ParseUint(part, base, 64)
		if err != nil {
			return "", false
		}
		if i == len(parts)-1 {
			if bits := 8 * (5 - len(parts)); n>>bits != 0 {
				return "", false
			}
			ip |= n
		} else if n > 255 {
			return "", false
		} else {
			ip |= n << (8 * (3 - i))
		}
	}
	return netip.AddrFrom4([4]byte{byte(ip >> 24), byte(ip >> 16), byte(ip >> 8), byte(ip)}).String(), true
}

// show is the host for people: an international name, and its ASCII form behind it.
func (a address) show() string {
	if strings.Contains(a.host, "xn--") {
		if name, err := idna.ToUnicode(a.host); err == nil && name != a.host {
			return name + " (" + a.host + ")"
		}
	}
	return a.host
}

// link notes a link, each once.
func (r *reader) link(text, href string) {
	href = strings.TrimSpace(href)
	if href == "" {
		return
	}
	text = fold(text)
	key := [2]string{text, href}
	if r.seen[key] {
		return
	}
	r.seen[key] = true
	to := resolve(href)
	r.view.Links = append(r.view.Links, Link{Text: text, Href: href, Host: to.show(), Misleading: misleading(text, href, to)})
}

// misleading tells that the text of a link, or what stands before an @ in its address, names a
// host that it does not lead to. Hosts of one registered domain count as the same.
func misleading(text, href string, to address) bool {
	if to.scheme != "mailto" && namedHost(to.user) != "" && site(namedHost(to.user)) != site(to.host) {
		return true
	}
	between := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`()[]{}<>"'|,;`, r) }
	for _, word := range strings.FieldsFunc(text, between) {
		if word == href {
			continue
		}
		if box, domain, ok := cutLast(word, "@"); ok && !strings.ContainsAny(box, "/:") && namedHost(domain) != "" {
			if to.scheme != "mailto" && site(namedHost(domain)) != site(to.host) {
				return true
			}
			if to.scheme == "mailto" && !strings.EqualFold(to.box, strings.TrimRight(word, ".:!?")) {
				return true
			}
			continue
		}
		if host := namedHost(word); host != "" && site(host) != site(to.host) {
			return true
		}
	}
	return false
}

// namedHost is the host that a word seems to name: with a scheme or www, or with an ending that
// is in use on the internet. Empty for other words.
func namedHost(word string) string {
	word = strings.TrimRight(word, ".:!?")
	if !strings.ContainsAny(word, ".:/。．｡") {
		return ""
	}
	named := false
	if scheme, rest := splitScheme(word); strings.HasPrefix(rest, "//") && scheme != "" {
		word, named = rest[2:], true
	}
	host := authority("https", word).host
	if named || strings.HasPrefix(host, "www.") {
		return host
	}
	suffix, known := publicsuffix.PublicSuffix(host)
	if !known && !strings.Contains(suffix, ".") || strings.ContainsAny(host, "_ ") {
		return ""
	}
	if _, err := publicsuffix.EffectiveTLDPlusOne(host); err != nil {
		return ""
	}
	return host
}

// site is the registered domain of a host.
func site(host string) string {
	if domain, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return domain
	}
	return host
}

// linksIn notes the addresses in running text: mail programs make links of them.
func (r *reader) linksIn(text string) {
	if !strings.Contains(text, ":") && !strings.Contains(text, "@") && !strings.Contains(strings.ToLower(text), "www.") {
		return
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("<>\"`。，、）】」』！？；：“”‘’«»", r)
	}) {
		found := false
		for _, start := range linkStarts(lowered(word)) {
			found = true
			href := trimAddress(word[start.at:start.end])
			if len(href) <= start.prefix {
				continue
			}
			r.link(href, start.implied+href)
		}
		if found {
			continue
		}
		box, domain, ok := cutLast(strings.Trim(word, ".,;:!?()[]{}'*_~"), "@")
		if ok && box != "" && namedHost(domain) != "" && !strings.ContainsAny(box, "/:@") {
			r.link(box+"@"+domain, "mailto:"+box+"@"+domain)
		}
	}
}

// linkStart is where an address begins in a word, and where the next one or the word ends.
type linkStart struct {
	at, end, prefix int
	implied         string
}

// lowered is the word with its ASCII letters in lower case: as long as it was.
func lowered(word string) string {
	b := []byte(word)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

// linkStarts finds the addresses in a word of lower case.
func linkStarts(word string) (list []linkStart) {
	for _, prefix := range []string{"http://", "https://", "ftp://", "mailto:", "tel:", "www."} {
		implied := ""
		if prefix == "www." {
			implied = "http://"
		}
		for from := 0; ; {
			i := strings.Index(word[from:], prefix)
			if i < 0 {
				break
			}
			at := from + i
			from = at + len(prefix)
			if at > 0 && (alphanumeric(word[at-1]) || prefix == "www." && strings.IndexByte("/.-@", word[at-1]) >= 0) {
				continue
			}
			list = append(list, linkStart{at: at, end: len(word), prefix: len(prefix), implied: implied})
		}
	}
	slices.SortFunc(list, func(a, b linkStart) int { return a.at - b.at })
	for i := range list[:max(len(list)-1, 0)] {
		list[i].end = list[i+1].at
	}
	return list
}

// trimAddress takes off the punctuation that belongs to the sentence.
func trimAddress(href string) string {
	for {
		trimmed := strings.TrimRight(href, ".,;:!?'*_~")
		for _, pair := range []string{"()", "[]", "{}"} {
			if strings.HasSuffix(trimmed, pair[1:]) && strings.Count(trimmed, pair[:1]) < strings.Count(trimmed, pair[1:]) {
				trimmed = trimmed[:len(trimmed)-1]
			}
		}
		if trimmed == href {
			return href
		}
		href = trimmed
	}
}

// alphanumeric tells small letters and digits: words are in lower case here.
func alphanumeric(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
