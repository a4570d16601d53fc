package main

import (
	"strconv"
	"strings"
)

// brand is a row of table brand, with what other rows take from it.
type brand struct {
	id, partner int64
	name        string
	president   string
	category    int64
	country     string
	homepage    text
	created     stamp

	// The language of its names, and the theme of its category, which choose the words of its campaigns.
	lex   *lexicon
	theme int
}

// brand makes the row of an id: it is a pure function, as all that make rows.
func (p *plan) brand(id int64) brand {
	owner, _ := p.brandOwner.of(id)
	firm := p.partner(owner)
	d := roll(p.seed, forBrand, id)
	place, _ := p.brandCategory.owner(d.below(p.brandCategory.total()))
	c := p.categories[place]
	r := brand{
		id: id, partner: owner, category: c.id, theme: c.theme, lex: firm.lex,
		created: firm.created + stamp(d.below(int64(700*day))).whole(),
	}
	if d.percent(6) { // a partner's brand abroad
		r.lex = country(&d)
	}
	r.country = r.lex.Country
	stem := r.lex.stem(&d)
	r.name = r.lex.after(stem.native, pick(&d, r.lex.BrandNouns[c.theme]))
	switch n := d.below(100); {
	case n < 4: // president stays ''
	case n < 10:
		r.president = r.lex.person(&d).name + ", " + r.lex.person(&d).name
	default:
		r.president = r.lex.person(&d).name
	}
	switch id % 53 {
	case 23:
		r.name = odd(r.name, oddities[id/53%int64(len(oddities))], 200)
	case 24:
		if r.president != "" {
			r.president = odd(r.president, oddities[id/53%int64(len(oddities))], 200)
		}
	}
	r.name, r.president = cut(r.name, 200), cut(r.president, 200)
	if !d.percent(15) {
		r.homepage = some("https://www." + stem.ascii + strconv.FormatInt(id, 10) + ".example/")
	}
	if id%211 == 7 { // as long as the column
		url := "https://www." + stem.ascii + ".example/?q="
		r.homepage = some(url + strings.Repeat("x", 500-len(url)))
	}
	return r
}

// values are those of the row, in the order of the table's columns.
func (r brand) values() []any {
	return []any{r.id, r.partner, r.name, r.president, r.category, r.country, r.homepage, r.created}
}
