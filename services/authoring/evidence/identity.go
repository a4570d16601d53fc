package evidence

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"
)

// Fact is a member of a row, or of a context, that says whom it is of.
type Fact struct {
	// Name is the member as it is written.
	Name string
	// Of is what it says: one of the values of facts.
	Of string
	// Value is an id in digits, or a name.
	Value string
}

// IsID tells that the fact is an id.
func (f Fact) IsID() bool { return strings.HasSuffix(f.Of, "id") }

// partnerID is what facts call the id of a partner.
const partnerID = "partner id"

// facts are the members that say whom something is of, as they are folded. Other names, such as that of a category, are shared.
var facts = map[string]string{
	"partnerid": partnerID, "brandid": "brand id", "campaignid": "campaign id",
	"partner": "partner", "partnername": "partner", "company": "partner", "companyname": "partner", "회사명": "partner", "파트너명": "partner",
	"brand": "brand", "brandname": "brand", "브랜드": "brand", "브랜드명": "brand",
	"campaign": "campaign", "campaignname": "campaign", "캠페인": "campaign", "캠페인명": "campaign",
	"president": "president", "대표자": "president", "대표자명": "president",
}

// maxFact is how long a fact is at most, in characters: no name is longer, and each is compared with those of all targets.
const maxFact = 200

// Facts are what an object says of whom it is of, in its own members and in those of its members partner, brand and campaign.
// The name of a row with a campaign_id is the campaign's. What cannot be read, or has more than 200 characters, says nothing.
func Facts(object []byte) []Fact {
	all, _ := Map(object)
	return factsOf("", all)
}

// factsOf are those of the members of an object, which stands as a member of a name in another one, or nowhere.
func factsOf(parent string, all map[string]jsontext.Value) (list []Fact) {
	for name, value := range all {
		if value.Kind() == '{' && parent == "" && slices.Contains(kinds, name) {
			inner, _ := Map(value)
			list = append(list, factsOf(name, inner)...)
			continue
		}
		of := facts[folded(name)]
		_, isCampaign := all["campaign_id"]
		if name == "name" && (parent != "" || isCampaign) {
			if of = parent; isCampaign {
				of = "campaign"
			}
		}
		f := Fact{Name: name, Of: of}
		switch {
		case of == "":
			continue
		case f.IsID():
			f.Value = strings.Trim(string(value), `"`)
		case value.Kind() == '"':
			b, _ := jsontext.AppendUnquote(nil, value)
			f.Value = string(b)
		}
		if utf8.RuneCountInString(f.Value) <= maxFact && folded(f.Value) != "" && (!f.IsID() || strings.Trim(f.Value, "0123456789") == "") {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b Fact) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// legal are the forms of companies, which people write or leave out.
var legal = strings.NewReplacer("㈜", "", "(주)", "", "주식회사", "", "유한회사", "", "co.", "", "ltd.", "", "inc.", "")

// folded is a name without what people write differently of one: case, blanks, marks, the form of a company, syllables in parts.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t_-.,'\"·", r) {
			return -1
		}
		return r
	}, legal.Replace(strings.ToLower(norm.NFC.String(name))))
}

// mostCompared is how many values are compared with another one by their parts. A partner may have thousands of campaigns, and a
// draft thousands of targets of that partner.
const mostCompared = 50

// Known is what the rows of a segment say of partners: by partner and fact.
type Known map[int64]map[string]*values

// values are those of a fact, by their folded form; least is the first of them in the order of texts.
type values struct {
	all   map[string]string
	least string
}

// Add notices what a row says of its partner.
func (k Known) Add(partner int64, row []byte) {
	for _, f := range Facts(row) {
		if k[partner] == nil {
			k[partner] = map[string]*values{}
		}
		v := k[partner][f.Of]
		if v == nil {
			v = &values{map[string]string{}, f.Value}
			k[partner][f.Of] = v
		}
		v.all[folded(f.Value)], v.least = f.Value, min(v.least, f.Value)
	}
}

// Names are all names that the rows have of a partner; false when they are too many to be compared.
func (k Known) Names(partner int64) (list []string, all bool) {
	for of, v := range k[partner] {
		if (Fact{Of: of}).IsID() {
			continue
		}
		if len(list)+len(v.all) > mostCompared {
			return nil, false
		}
		list = slices.AppendSeq(list, maps.Values(v.all))
	}
	return list, true
}

// Owners says which partners a fact is of, by a fact and its folded value.
type Owners map[[2]string]int64

// Owners is k the other way round. Of several partners it has one.
func (k Known) Owners() Owners {
	o := Owners{}
	for partner, all := range k {
		for of, v := range all {
			for value := range v.all {
				o[[2]string{of, value}] = partner
			}
		}
	}
	return o
}

// Stray is a fact in a target's context that is of somebody else.
type Stray struct {
	Fact
	// Own is one of the values that the rows of the target's partner have; Owner the partner that has the stray one, 0 for none.
	Own   string
	Owner int64
}

// Stray returns the first of a context's facts that is of somebody else than a partner: an id that none of its rows has, or a name
// that only the rows of another partner have. Facts of which its own rows say nothing are nobody's, and so are names of which they have
// too many to be compared.
func (k Known) Stray(partner int64, list []Fact, owners Owners) *Stray {
	digits := strconv.FormatInt(partner, 10)
	for _, f := range list {
		value := folded(f.Value)
		if f.Of == partnerID {
			if value != digits {
				return &Stray{f, digits, 0}
			}
			continue
		}
		own := k[partner][f.Of]
		if own == nil || own.has(value, f.IsID()) {
			continue
		}
		owner := owners[[2]string{f.Of, value}]
		if owner == partner || owner == 0 && !f.IsID() {
			continue
		}
		return &Stray{f, own.least, owner}
	}
	return nil
}

// has tells that a folded value is one of those, or that a name is a part of one or the other way round, or may be.
func (v values) has(value string, isID bool) bool {
	if _, is := v.all[value]; is || isID {
		return is
	}
	if len(v.all) > mostCompared {
		return true
	}
	for key := range v.all {
		if strings.Trim(value, "0123456789") != "" && (strings.Contains(key, value) || strings.Contains(value, key)) {
			return true
		}
	}
	return false
}
