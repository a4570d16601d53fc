package query_test

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-kit/kit/sd"
	"pgregory.net/rapid"

	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/service"
	"hub.internal/services/query"
	"hub.internal/services/query/recipients"
)

// people fills a source with partners, contacts of each sort and members.
func people(t *testing.T) *tools {
	t.Helper()
	const day = "2026-01-01 00:00:00"
	x := serve(t)
	x.insert("partner", [][]any{{1, "one", nil, "KR", day}, {2, "two", nil, "KR", day}, {3, "three", nil, "KR", day}})
	x.insert("partner_admin", [][]any{
		{11, 1, "a", "Ada@One.example", 1, "READY", nil, nil, day}, {12, 1, "b", "pending@one.example", 1, "PENDING", nil, nil, day},
		{13, 1, "c", "unverified@one.example", 0, "READY", nil, nil, day}, {14, 1, "d", "both@one.example", 1, "READY", nil, nil, day},
		{15, 1, "h", "behind@one.example", 1, "READY", nil, nil, day}, {16, 1, "i", "before@one.example", 1, "READY", nil, nil, day},
		{17, 1, "j", "broken@one.example", 1, "READY", nil, nil, day}, {18, 1, "k", "near@one.example", 1, "READY", nil, nil, day},
		{21, 2, "e", "eve@two.example", 1, "READY", nil, nil, day}, {22, 2, "f", "left@two.example", 1, "LEAVE", nil, nil, day},
		{99, 77, "g", "orphan@gone.example", 1, "READY", nil, nil, day},
	})
	x.insert("member", [][]any{{1, "m", "Member@B2C.example", "KR", nil, day}, {2, "n", "both@one.example", "KR", nil, day},
		{3, "o", "behind@one.example ", "KR", nil, day}, {4, "p", " before@one.example", "KR", nil, day},
		{5, "q", "broken@one.example\r\n", "KR", nil, day}, {6, "r", "near@one.example.org", "KR", nil, day}})
	return x
}

func TestRecipients(t *testing.T) {
	t.Parallel()
	x := people(t)
	mux := http.NewServeMux()
	service.Operations(rpc.Server{Mux: mux, Keys: callertest.Keys(t, "query", "authoring"), Logger: slog.New(slog.DiscardHandler)},
		query.Operations(query.New(query.Config{}), recipients.New(x.source))...)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	client := remote.New(remote.Options{Service: "query", Instancer: sd.FixedInstancer{strings.TrimPrefix(server.URL, "http://")},
		Keys: callertest.Keys(t, "authoring"), Logger: slog.New(slog.DiscardHandler), Patience: hubtest.Patience})
	t.Cleanup(client.Close)
	check := func(targets ...recipients.Recipient) (recipients.Response, error) {
		return remote.Operation[recipients.Request, recipients.Response]{Path: recipients.Path,
			Repeatable: true}.Call(t.Context(), client, recipients.Request{Targets: targets})
	}
	cases := []struct {
		partner int64
		email   string
		want    string
	}{
		{1, "ada@one.example", ""}, {1, "ADA@ONE.EXAMPLE", ""}, {2, "eve@two.example", ""},
		{1, "pending@one.example", "[not_a_verified_contact]"}, {1, "unverified@one.example", "[not_a_verified_contact]"},
		{2, "left@two.example", "[not_a_verified_contact]"},
		{2, "ada@one.example", "[not_a_verified_contact]"}, {3, "ada@one.example", "[not_a_verified_contact]"},
		{1, "nobody@one.example", "[not_a_verified_contact]"},
		{4, "ada@one.example", "[unknown_partner]"}, {0, "x@y.example", "[unknown_partner]"},
		{9223372036854775807, "x@y.example", "[unknown_partner]"}, {77, "orphan@gone.example", "[unknown_partner]"},
		{1, "behind@one.example", "[b2c_member]"}, {1, "before@one.example", "[b2c_member]"}, {1, "broken@one.example", "[b2c_member]"},
		{1, "near@one.example", ""},
		{1, "both@one.example", "[b2c_member]"}, {1, "member@b2c.example", "[b2c_member not_a_verified_contact]"},
		{1, "MEMBER@B2C.EXAMPLE", "[b2c_member not_a_verified_contact]"},
		{4, "member@b2c.example", "[b2c_member unknown_partner]"}, {1, "' OR 1=1 -- @x.example", "[not_a_verified_contact]"},
		{1, "%@one.example", "[not_a_verified_contact]"}, {1, "", "[not_a_verified_contact]"},
	}
	var all []recipients.Recipient
	var want []string
	for i, c := range cases {
		all = append(all, recipients.Recipient{PartnerID: c.partner, Email: c.email})
		if c.want != "" {
			want = append(want, fmt.Sprint("{", i, " ", c.want, " <nil>}"))
		}
		got, err := check(all[i])
		text := ""
		if len(got.Targets) == 1 {
			text = fmt.Sprint(got.Targets[0].Reasons)
		}
		if err != nil || text != c.want {
			t.Errorf("%d, %q: %+v, %v; want %s", c.partner, c.email, got, err, c.want)
		}
	}
	if got, err := check(all...); err != nil || fmt.Sprint(got.Targets) != "["+strings.Join(want, " ")+"]" {
		t.Errorf("together: %v, %v; want %v", got.Targets, err, want)
	}
	named, err := check(recipients.Recipient{PartnerID: 1, Email: "ADA@one.example", Name: " A "}, recipients.Recipient{PartnerID: 2,
		Email: "eve@two.example", Name: "Ada"}, recipients.Recipient{PartnerID: 2, Email: "eve@two.example"},
		recipients.Recipient{PartnerID: 1, Email: "nobody@one.example", Name: "Ada"})
	if err != nil || fmt.Sprint(named.Named) != "[{1 [e]}]" {
		t.Errorf("named: %v, %v", named.Named, err)
	}
	const day = "2026-01-01 00:00:00"
	// A brand's or a campaign's id in place of a partner's: the last two are a partner's as well, and the address tells.
	x.insert("brand", [][]any{{301, 2, "b", "", 12, "KR", nil, day}, {3, 2, "b", "", 12, "KR", nil, day}})
	x.insert("campaign", [][]any{{301, 1, 301, "c", "1206", day, nil, 0, 0, 0, day}, {302, 1, 301, "c", "1206", day, nil, 0, 0, 0, day}})
	meant := map[string]string{
		"301 eve@two.example": "{brand 2}", "301 nobody@x.example": "{brand 2}", "302 ada@one.example": "{campaign 1}", "303 ada@one.example": "",
		"3 EVE@two.example": "{brand 2}", "3 ada@one.example": "", "301 member@b2c.example": "",
	}
	for written, want := range meant {
		var r recipients.Recipient
		if _, err := fmt.Sscan(written, &r.PartnerID, &r.Email); err != nil {
			t.Fatal(err)
		}
		got, err := check(r)
		text := ""
		if err == nil && len(got.Targets) == 1 && got.Targets[0].Meant != nil {
			text = fmt.Sprint(*got.Targets[0].Meant)
		}
		if err != nil || text != want {
			t.Errorf("%s: meant %q, %v; want %q", written, text, err, want)
		}
	}
	readRows := func(kind recipients.Kind, ids ...int64) string {
		ask := remote.Operation[recipients.RowsRequest, recipients.RowsResponse]{Path: recipients.RowsPath, Repeatable: true}
		got, err := ask.Call(t.Context(), client, recipients.RowsRequest{Kind: kind, IDs: ids})
		if err != nil {
			return string(fault.From(err).Code)
		}
		slices.SortFunc(got.Rows, func(a, b recipients.Row) int { return cmp.Compare(a.ID, b.ID) })
		return string(plain(got.Rows))
	}
	// Rows are as search tools answer them; those that are not there are left out.
	for _, c := range []struct {
		kind recipients.Kind
		ids  []int64
		want string
	}{
		{recipients.PartnerID, []int64{2, 1, 99, 2}, `[{"id":1,"row":{"business_no":null,"country_code":"KR",` +
			`"created_at":"2026-01-01T00:00:00","name":"one",` +
			`"partner_id":1}},{"id":2,"row":{"business_no":null,"country_code":"KR",` +
			`"created_at":"2026-01-01T00:00:00","name":"two","partner_id":2}}]`},
		{recipients.BrandID, []int64{301, 302}, `[{"id":301,"row":{"brand_id":301,"brand_name":"b","category_id":12,` +
			`"category_name":null,"contact":null,` +
			`"country_code":"KR","last_campaign":{"campaign_id":302,"name":"c","start_at":"2026-01-01T00:00:00","status":"accepting",` +
			`"status_code":"1206"},"last_campaign_at":"2026-01-01T00:00:00","partner_id":2,"partner_name":"two","president":""}}]`},
		{recipients.CampaignID, []int64{302}, `[{"id":302,"row":{"apply_count":0,"brand_id":301,` +
			`"campaign_id":302,"end_at":null,"name":"c","offer_count":0,` +
			`"partner_id":1,"partner_name":"one","start_at":"2026-01-01T00:00:00","status":"accepting","status_code":"1206","view_count":0}}]`},
		{recipients.BrandID, []int64{}, `[]`}, {"member", []int64{1}, "E_VALIDATION"},
		{recipients.BrandID, make([]int64, 10_001), "E_VALIDATION"},
	} {
		if got := readRows(c.kind, c.ids...); got != c.want {
			t.Errorf("%s %.20v:\n got %s\nwant %s", c.kind, c.ids, got, c.want)
		}
	}
	checkIDs := func(kind recipients.Kind, ids ...int64) string {
		ask := remote.Operation[recipients.IDsRequest, recipients.IDsResponse]{Path: recipients.IDsPath, Repeatable: true}
		got, err := ask.Call(t.Context(), client, recipients.IDsRequest{Kind: kind, IDs: ids})
		if err != nil {
			return string(fault.From(err).Code)
		}
		return fmt.Sprint(got.Unknown, got.First, got.Others)
	}
	for _, c := range []struct {
		kind recipients.Kind
		ids  []int64
		want string
	}{
		{"partner", []int64{1, 2, 3, 1}, "0 [] []"}, {"partner", nil, "0 [] []"},
		{"partner", []int64{301, 0, 302, 301, 1 << 62, -1}, "5 [301 0 302 4611686018427387904 -1] [{brand 1} {campaign 2}]"},
		{"brand", []int64{301, 1, 3, 302}, "2 [1 302] [{partner 1} {campaign 1}]"}, {"campaign", []int64{302, 301}, "0 [] []"},
		{"member", []int64{1}, "E_VALIDATION"},
		{"partner", []int64{90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101}, "12 [90 91 92 93 94 95 96 97 98 99] []"},
		{"partner", make([]int64, 50_001), "E_VALIDATION"},
	} {
		if got := checkIDs(c.kind, c.ids...); got != c.want {
			t.Errorf("%s %.100v: %s, want %s", c.kind, c.ids, got, c.want)
		}
	}
	many := make([]int64, 50_000) // the longest of a whole segment
	for i := range many {
		many[i] = 9223372036854775807 - int64(i)
	}
	start := time.Now()
	if got := checkIDs("campaign", many...); !strings.HasPrefix(got, "50000 [9223372036854775807 ") || time.Since(start) > hubtest.Patience {
		t.Errorf("%s after %s", got, time.Since(start))
	}
	t.Logf("50,000 ids take %s", time.Since(start))
	if got, err := check(); err != nil || got.Targets == nil || len(got.Targets) != 0 {
		t.Errorf("nobody: %+v, %v", got, err)
	}
	if _, err := check(make([]recipients.Recipient, 10_001)...); !fault.Is(err, fault.Validation) {
		t.Errorf("too many: %v", err)
	}
	// The longest addresses of a whole draft fit.
	long := make([]recipients.Recipient, 10_000)
	for i := range long {
		long[i] = recipients.Recipient{PartnerID: 1 << 62, Email: fmt.Sprintf("%0242d@x.example", i)}
	}
	if got, err := check(long...); err != nil || len(got.Targets) != len(long) {
		t.Errorf("%d of the longest: %v", len(got.Targets), err)
	}
	server.Close()
	if _, err := check(all...); !fault.Is(err, fault.DB) {
		t.Errorf("away: %v", err)
	}
	res := httptest.NewRecorder()
	mux.ServeHTTP(res, httptest.NewRequest(http.MethodPost, recipients.Path, strings.NewReader(`{}`)))
	if res.Code != http.StatusUnauthorized {
		t.Errorf("without a token: %d", res.Code)
	}
}

// TestRecipientsLikeAnOracle compares random worlds with the rules written as loops; there
// are more targets than one statement takes.
func TestRecipientsLikeAnOracle(t *testing.T) {
	t.Parallel()
	x := serve(t)
	const day = "2026-01-01 00:00:00"
	type contact struct {
		partner  int64
		email    string
		verified bool
		status   string
	}
	var contacts []contact
	members := map[string]bool{}
	var rows, partners, memberRows [][]any
	for i := range int64(1500) {
		partners = append(partners, []any{i * 2, "p", nil, "KR", day}) // odd ids are unknown
		c := contact{i * 2, fmt.Sprintf("C%d@p%d.example", i, i), i%3 != 0, []string{"READY", "READY", "PENDING"}[i%5%3]}
		contacts = append(contacts, c)
		rows = append(rows, []any{nil, c.partner + 0, "c", c.email, c.verified, c.status, nil, nil, day})
		if i%7 == 0 {
			members[strings.ToLower(c.email)] = true
			memberRows = append(memberRows, []any{nil, "m", strings.ToUpper(c.email), "KR", nil, day})
		}
	}
	partners = partners[1:] // 0 would be numbered by the server
	for i := range rows {
		rows[i][0] = i + 1
	}
	for i := range memberRows {
		memberRows[i][0] = i + 1
	}
	x.insert("partner", partners)
	x.insert("partner_admin", rows)
	x.insert("member", memberRows)
	judge := recipients.New(x.source)
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.SampledFrom([]int{1, 5, 999, 1000, 1001, 2500}).Draw(rt, "targets")
		seed := rapid.Int64Range(1, 1_000_000).Draw(rt, "seed")
		targets := make([]recipients.Recipient, n)
		want := map[int]string{}
		for i := range targets {
			c := contacts[(seed+int64(i)*7)%int64(len(contacts))]
			targets[i] = recipients.Recipient{PartnerID: c.partner, Email: c.email}
			switch (seed + int64(i)) % 4 {
			case 1:
				targets[i].PartnerID++
			case 2:
				targets[i].Email = strings.ToLower(c.email)
			case 3:
				targets[i].PartnerID = (c.partner + 2) % 2998
			}
			p, reasons := targets[i].PartnerID, []recipients.Reason(nil)
			if members[strings.ToLower(c.email)] {
				reasons = append(reasons, recipients.B2CMember)
			}
			switch {
			case p%2 == 1 || p == 0:
				reasons = append(reasons, recipients.UnknownPartner)
			case p != c.partner || !c.verified || c.status != "READY":
				reasons = append(reasons, recipients.NotAVerifiedContact)
			}
			if reasons != nil {
				want[i] = fmt.Sprint(reasons)
			}
		}
		got, err := judge.Check(t.Context(), recipients.Request{Targets: targets})
		if err != nil || len(got.Targets) != len(want) {
			rt.Fatalf("%d refused, want %d; %v", len(got.Targets), len(want), err)
		}
		for _, r := range got.Targets {
			if fmt.Sprint(r.Reasons) != want[r.Index] {
				rt.Fatalf("%+v: %v, want %s", targets[r.Index], r.Reasons, want[r.Index])
			}
		}
	})
}
