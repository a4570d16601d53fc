package gateway_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"hub.internal/pkg/hubtest"
	"hub.internal/services/gateway"
	"hub.internal/services/gateway/catalog"
)

// maxCatalog is what an agent reads before its first call, in bytes.
const maxCatalog = 25 << 10

func realCatalog(t *testing.T) *fixture {
	t.Helper()
	return newFixture(t, func(g *gateway.Gateway) {
		catalog, err := catalog.Load(filepath.Join(hubtest.Root(t), "deploy", "catalog.json"), g.Logger)
		if err != nil {
			t.Fatal(err)
		}
		g.Catalog = catalog
	})
}

func TestTheCatalogIsSmall(t *testing.T) {
	e := realCatalog(t)
	if r := e.do(
		t,
		"GET",
		"/api/tools",
		"",
		bearer(allScopes)...); r.status != http.StatusOK || *r.env.Count != len(e.gateway.Catalog.Entries()) ||
		len(r.body) >= maxCatalog {
		t.Errorf("%d: %d tools in %d bytes, want less than %d (maxCatalog, and DESIGN.md)", r.status, *r.env.Count, len(r.body), maxCatalog)
	}
}

// TestAMemberOfAnotherToolNamesThatTool: a refusal says who takes what this tool does not.
func TestAMemberOfAnotherToolNamesThatTool(t *testing.T) {
	t.Parallel()
	e := realCatalog(t)
	for _, c := range []struct{ tool, input, want string }{
		{"search_campaigns", `{"brandId":7}`, "; brandId is of get_brand."},
		{"search_brands", `{"brandIds":[7]}`, "; brandId is of get_brand."},
		{"get_brand", `{"brandIds":[7]}`, "/brandIds is not a property of this input; did you mean brandId? Here it has"},
		{"search_brands", `{"zzz":7}`, "lastCampaignBefore, limit, offset."},
		{"search_brands", `{"partnerId":7,"sql":"SELECT 1"}`, "; partnerId is of search_campaigns, search_partner_contacts. (1 more"},
	} {
		r := e.do(t, "POST", "/api/tools/"+c.tool, c.input, bearer(allScopes)...)
		if r.status != http.StatusBadRequest || !strings.Contains(r.env.Error.Message, c.want) {
			t.Errorf("%s %s: %d %s", c.tool, c.input, r.status, r.env.Error.Message)
		}
	}
}

func TestAnUnknownToolNamesTheOneThatWasMeant(t *testing.T) {
	e := realCatalog(t)
	for name, want := range map[string]string{
		"searchBrands": "Did you mean search_brands? ", "search-brands": "Did you mean search_brands? ",
		"search_brand":  "Did you mean search_brands? ",
		"SEARCH_BRANDS": "Did you mean search_brands? ", "getDDL": "Did you mean get_ddl? ", "execute_sql": "Did you mean execute_read_sql? ",
		"list_brands": "Did you mean ", "zzz": "There is no tool \"zzz\". GET /api/tools lists the tools.",
	} {
		if r := e.do(
			t,
			"POST",
			"/api/tools/"+name,
			`{}`,
			bearer(allScopes)...); r.code() != "E_NOT_FOUND" ||
			!strings.Contains(r.env.Error.Message, want) {
			t.Errorf("%s: %s", name, r.body)
		}
	}
}

func TestAKeyWithoutBearerIsToldSo(t *testing.T) {
	e := newFixture(t)
	const want = `"message":"The header Authorization has an API key without the word Bearer: send Authorization: Bearer <API_KEY>, ` +
		`or X-API-Key: <API_KEY>."`
	for _, value := range []string{allScopes, "Token " + allScopes, "Basic " + allScopes} {
		r := e.do(t, "GET", "/api/tools", "", "Authorization", value)
		if r.status != http.StatusUnauthorized || r.code() != "E_AUTH_INVALID" || !strings.Contains(r.body, want) {
			t.Errorf("%s: %s", value[:6], r.body)
		}
	}
	for _, value := range []string{"Basic dXNlcjpwYXNz", "crm_short", "Bearer " + allScopes + "x"} {
		if r := e.do(
			t,
			"GET",
			"/api/tools",
			"",
			"Authorization",
			value,
		); r.code() != "E_AUTH_INVALID" ||
			strings.Contains(r.body, "Bearer") {
			t.Errorf("%s: %s", value, r.body)
		}
	}
}

func TestIDsComeAsNumbersThroughTheEdge(t *testing.T) {
	e := realCatalog(t)
	for name, body := range map[string]string{"queue_for_review": `{"draftId":7}`} {
		if f := e.gateway.Catalog.Entry(name).Validate(t.Context(), []byte(body)); f != nil {
			t.Errorf("%s %s: %v", name, body, f)
		}
	}
}
