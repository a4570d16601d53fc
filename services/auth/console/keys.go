package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/auth"
)

// keysPath is the list of API keys; the pages of a key lie below it, at its id.
const keysPath = "/admin/keys"

// keysCrumb leads from the page of a key back to the list.
func keysCrumb(ctx context.Context) web.Link {
	return web.Link{Text: i18n.T(ctx, "API keys"), Href: keysPath}
}

// keysPage is a page of the list of keys.
type keysPage struct {
	Finder web.Finder
	Keys   []keyRow
	Pager  web.Pager
	Search string
}

// keyRow is a key as it is at a moment.
type keyRow struct {
	auth.Key
	Status auth.Status
}

// Badge is the key's state.
func (k keyRow) Badge() web.Badge {
	return map[auth.Status]web.Badge{
		auth.Active:  {Kind: "good", Text: i18n.N("Active")},
		auth.Expired: {Kind: "warn", Text: i18n.N("Expired")},
		auth.Revoked: {Kind: "bad", Text: i18n.N("Revoked")},
	}[k.Status]
}

// Hint tells keys apart without telling them.
// It is the first 8 and the last 4 characters, such as crm_AbCd…wXyZ; a whole key is 46 long.
func (k keyRow) Hint() string { return k.Head + "…" + k.Tail }

// row is a key as it is at this moment.
func (c *Console) row(k auth.Key) keyRow { return keyRow{k, k.Status(c.Now())} }

// keys lists keys that are searched for, the active ones first to be seen.
// The list pages by keyset pagination: after is the id of the last key of the page before.
func (c *Console) keys(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	at := listStateOf(r, keysPath, string(auth.Active), string(auth.Expired), string(auth.Revoked), everything)
	f := auth.KeyFilter{Search: at.search, Status: auth.Status(at.show), After: at.after, Limit: web.RowsOnPage}
	if at.show == everything {
		f.Status = ""
	}
	list, next, err := c.Service.List(ctx, f)
	if err != nil {
		return err
	}
	p := keysPage{Search: at.search, Pager: at.pager(ctx, i18n.T(ctx, "More keys"), next),
		Finder: at.finder(i18n.T(ctx, "Name, user or id"), i18n.T(ctx, "Which keys"),
			web.Link{Text: i18n.T(ctx, "Issue a key"), Href: keysPath + "/new"},
			[2]string{string(auth.Active), i18n.T(ctx, "Active")}, [2]string{string(auth.Expired), i18n.T(ctx, "Expired")},
			[2]string{string(auth.Revoked), i18n.T(ctx, "Revoked")}, [2]string{everything, i18n.T(ctx, "All")})}
	for _, k := range list {
		p.Keys = append(p.Keys, c.row(k))
	}
	return c.site.Render(w, r, "keys", web.Page{Title: i18n.T(ctx, "API keys"),
		Lead: i18n.T(ctx, "Who may call Hub's tools, and how much of them."), Data: p, Keys: listKeys(ctx, i18n.T(ctx, "key"))})
}

// keyForm is what a new key is asked to be.
type keyForm struct {
	// ID is the id that the key will have, drawn when the form was shown (see newKey).
	ID string
	// Expires is in days; 0 is a key that never expires.
	Name, Service, Expires, Scopes web.Field
	Limits                         []*web.Field
	Problem                        string
	// Open shows the limits, which few change.
	Open bool
}

// newKeyForm is the form as it was filled in; what was not keeps its default.
func newKeyForm(ctx context.Context, form url.Values) *keyForm {
	return &keyForm{
		ID: form.Get("id"),
		Name: web.Field{Name: "name", Label: i18n.T(ctx, "Name"), Value: form.Get("name"), Required: true, MaxLength: 100, Autofocus: true,
			Autocomplete: "off", Placeholder: i18n.T(ctx, "campaign agent"),
			Hint: i18n.T(ctx, "What the key is for. People see it beside the drafts that are made with it.")},
		Service: web.Field{Name: "service", Label: i18n.T(ctx, "User"), Value: form.Get("service"), MaxLength: 100, Autocomplete: "off",
			Hint: i18n.T(ctx,
				"Who uses it: keys of one user share a rate limit, and the audit log names the user. Without one the key stands for itself.")},
		Scopes: scopesField(ctx, form["scopes"]),
		Expires: web.Field{Name: "expires", Label: i18n.T(ctx, "Expires"), Type: "select", Value: cmp.Or(form.Get("expires"), "90"),
			Options: []web.Option{{Value: "7", Text: i18n.T(ctx, "in 7 days")}, {Value: "30", Text: i18n.T(ctx, "in 30 days")},
				{Value: "90", Text: i18n.T(ctx, "in 90 days")}, {Value: "365", Text: i18n.T(ctx, "in a year")},
				{Value: "0", Text: i18n.T(ctx, "never")}}},
		Limits: limitFields(ctx, form, auth.DefaultLimits()),
	}
}

// scopesField asks for the scopes of a key.
func scopesField(ctx context.Context, chosen []string) web.Field {
	f := web.Field{Name: "scopes", Label: i18n.T(ctx, "Scopes"), Type: "checks", Values: chosen}
	for _, s := range auth.Scopes() {
		f.Options = append(f.Options, web.Option{Value: s, Text: s, Hint: i18n.From(ctx).Text(scopeHints[s])})
	}
	return f
}

// scopeHints say what a scope of a key allows, by its code.
var scopeHints = map[string]string{
	"explore": i18n.N("look at the schema"), "sql": i18n.N("run SQL that reads"),
	"query": i18n.N("search brands, campaigns and contacts; list segments and drafts"), "author": i18n.N("make segments and drafts"),
	"control": i18n.N("hand drafts to people for review"), "admin:read": i18n.N("see connected apps and credentials"),
	"admin:write": i18n.N("change menus and pages"),
}

// issue is the wish that the form states.
func (f *keyForm) issue() auth.Issue {
	return auth.Issue{ID: f.ID, Name: strings.TrimSpace(f.Name.Value), Service: strings.TrimSpace(f.Service.Value), Scopes: f.Scopes.Values,
		Lifetime: time.Duration(wholeNumber(f.Expires.Value)) * 24 * time.Hour, Limits: limitsOf(f.Limits)}
}

// newKey shows the form of a new key. The id that it holds makes issuing idempotent: a form that is sent twice issues one
// key.
func (c *Console) newKey(w http.ResponseWriter, r *http.Request) error {
	return c.renderKeyForm(w, r, 0, newKeyForm(r.Context(), url.Values{"id": {c.Service.NewKeyID()}, "scopes": {"explore", "query"}}))
}

// renderKeyForm shows the form with what is wrong with it.
func (c *Console) renderKeyForm(w http.ResponseWriter, r *http.Request, status int, f *keyForm) error {
	return c.site.Render(w, r, "key_new", web.Page{Title: i18n.T(r.Context(), "Issue a key"), Status: status, Data: f,
		Crumbs: []web.Link{keysCrumb(r.Context())}})
}

// issuedPage shows a secret, this once.
type issuedPage struct {
	Once web.Once
	// Second is another one that was issued with it; nil for none.
	Second *web.Once
	Text   string
	Next   web.Link
}

// issueKey issues a key and shows it, this once.
func (c *Console) issueKey(w http.ResponseWriter, r *http.Request, form url.Values) error {
	ctx := r.Context()
	f := newKeyForm(ctx, form)
	k, secret, err := c.Service.Issue(ctx, f.issue())
	if rest, marked := web.Mark(err, append(f.Limits, &f.Name, &f.Service, &f.Scopes, &f.Expires)...); marked {
		f.Problem = rest
		f.Open = anyProblem(f.Limits)
		return c.renderKeyForm(w, r, http.StatusUnprocessableEntity, f)
	}
	// The id is taken: the form was sent twice, or loaded again. The key was shown then, and cannot be shown once more.
	if fault.Is(err, fault.Conflict) {
		return redirect(w, r, keysPath, "", err)
	}
	if err != nil {
		return err
	}
	return c.renderIssued(w, r, i18n.T(ctx, "The key is issued"), k.Name, issuedPage{
		Once: keyOnce(ctx, secret), Text: i18n.T(ctx, "It works from now on."),
		Next: web.Link{Text: i18n.T(ctx, "To the key"), Href: keysPath + "/" + k.ID},
	}, keysCrumb(ctx))
}

// keyOnce shows a key, this once.
func keyOnce(ctx context.Context, s auth.Secret) web.Once {
	return web.Once{ID: "secret", Label: i18n.T(ctx, "API key"), Value: s.Reveal(),
		Hint: i18n.T(ctx, "Keep it now, in a safe place: it is not shown again.")}
}

// renderIssued shows a page with a secret. It cannot be loaded again.
// The answer to the POST itself holds the secret: no URL has it, and no-store keeps it out of the browser's cache. Loading it again
// sends the form again, which is refused or makes another secret.
func (c *Console) renderIssued(w http.ResponseWriter, r *http.Request, title, lead string, p issuedPage, crumbs ...web.Link) error {
	return c.site.Render(w, r, "issued", web.Page{Title: title, Lead: lead, Crumbs: crumbs, Data: p})
}

// keyPage is a key with its rotations.
type keyPage struct {
	keyRow
	// Chain is the ids of the rotations, oldest first.
	Chain           []string
	Overlap, Scopes web.Field
}

// key shows a key.
func (c *Console) key(w http.ResponseWriter, r *http.Request) error {
	return c.renderKey(w, r, 0, "", "")
}

// renderKey shows a key with what is wrong with one of its two forms, if anything.
func (c *Console) renderKey(w http.ResponseWriter, r *http.Request, status int, scopesProblem, overlapProblem string) error {
	ctx := r.Context()
	k, chain, err := c.Service.Get(ctx, r.PathValue("id"))
	if err != nil {
		return err
	}
	p := keyPage{keyRow: c.row(k), Chain: chain, Overlap: overlapField(ctx, i18n.T(ctx, "The old key stays good for")),
		Scopes: scopesField(ctx, k.Scopes)}
	p.Scopes.Error, p.Overlap.Error = scopesProblem, overlapProblem
	return c.site.Render(w, r, "key", web.Page{Title: k.Name, Status: status, Data: p, Crumbs: []web.Link{keysCrumb(ctx)}})
}

// overlapField asks how long what is replaced stays good, in hours.
func overlapField(ctx context.Context, label string) web.Field {
	return web.Field{Name: "overlap", Label: label, Type: "select", Value: "24", Options: []web.Option{
		{Value: "0", Text: i18n.T(ctx, "no time: it stops at once")}, {Value: "1", Text: i18n.T(ctx, "one hour")},
		{Value: "24", Text: i18n.T(ctx, "a day")}, {Value: "168", Text: i18n.T(ctx, "a week")}, {Value: "720", Text: i18n.T(ctx, "30 days")}}}
}

// overlap is what an overlapField was answered with; what is none of its options is refused as one that is too short.
func overlap(form url.Values) time.Duration {
	return time.Duration(wholeNumber(form.Get("overlap"))) * time.Hour
}

// rescopeKey gives a key other scopes, unless the page is older than those that it has.
// Gateways are told by a notice; one that misses it asks again within 2 s.
func (c *Console) rescopeKey(w http.ResponseWriter, r *http.Request, form url.Values) error {
	id, ctx := r.PathValue("id"), r.Context()
	k, err := c.Service.Rescope(ctx, id, hadOf(form, "had"), form["scopes"])
	if problem := web.Problems(err)["scopes"]; problem != "" {
		return c.renderKey(w, r, http.StatusUnprocessableEntity, problem, "")
	}
	done := i18n.T(ctx, "The key has other scopes from now on.")
	if k.RotatedTo != "" {
		done += " " + i18n.T(ctx, "Its successor %s is another key, and stays as it is.", k.RotatedTo)
	}
	return redirect(w, r, keysPath+"/"+id, done, err)
}

// rotateKey issues the successor of a key and shows it, this once.
// E_CONFLICT, for a key that has a successor or is not active, is told on the key's page.
func (c *Console) rotateKey(w http.ResponseWriter, r *http.Request, form url.Values) error {
	id := r.PathValue("id")
	ctx := r.Context()
	rotation, err := c.Service.Rotate(ctx, id, overlap(form))
	if problem := web.Problems(err)["overlap"]; problem != "" {
		return c.renderKey(w, r, http.StatusUnprocessableEntity, "", problem)
	}
	if err != nil {
		return redirect(w, r, keysPath+"/"+id, "", err)
	}
	p := issuedPage{Once: keyOnce(ctx, rotation.Secret),
		Next: web.Link{Text: i18n.T(ctx, "To the new key"), Href: keysPath + "/" + rotation.Successor.ID},
		Text: i18n.T(ctx, "It works from now on, and may do what the old one may.") + " " +
			expiryText(ctx, i18n.T(ctx, "The old key"), *rotation.Old.ExpiresAt, c.Now())}
	return c.renderIssued(w, r, i18n.T(ctx, "The key is rotated"), rotation.Successor.Name, p, keysCrumb(ctx))
}

// expiryText says when something that was replaced stops.
func expiryText(ctx context.Context, what string, at, now time.Time) string {
	if !at.After(now) {
		return i18n.T(ctx, "%s has stopped.", what)
	}
	return i18n.T(ctx, "%s stops at %s UTC.", what, at.UTC().Format("2006-01-02 15:04"))
}

// keyRevocation asks before a key is revoked.
func (c *Console) keyRevocation(w http.ResponseWriter, r *http.Request) error {
	return c.renderRevocation(w, r, 0, reasonField(r.Context()))
}

// reasonField asks for the reason of something that the audit log keeps.
func reasonField(ctx context.Context) web.Field {
	return web.Field{
		Name: "reason", Label: i18n.T(ctx, "Reason"), Required: true, MaxLength: 500, Autofocus: true, Autocomplete: "off",
		Hint: i18n.T(ctx, "It is kept in the audit log."),
	}
}

// renderRevocation asks with the reason as it was typed.
func (c *Console) renderRevocation(w http.ResponseWriter, r *http.Request, status int, reason web.Field) error {
	ctx := r.Context()
	k, _, err := c.Service.Get(ctx, r.PathValue("id"))
	if err != nil {
		return err
	}
	page := keysPath + "/" + k.ID
	if k.RevokedAt != nil {
		return redirect(w, r, page, i18n.T(ctx, "The key is revoked already."), nil)
	}
	ask := web.Confirmation{
		Text: i18n.T(ctx,
			"Every call with it is refused from then on, on all gateways. It cannot be taken back: whoever needs a key gets another one."),
		Facts: []web.Fact{
			{Label: i18n.T(ctx, "Key"), Value: k.Name}, {Label: i18n.T(ctx, "Begins and ends"), Value: keyRow{Key: k}.Hint()},
			{Label: i18n.T(ctx, "User"), Value: k.Service},
		},
		Action: page + "/revoke", Fields: []web.Field{reason},
		Button: i18n.T(ctx, "Revoke"), Keep: web.Link{Text: i18n.T(ctx, "Keep the key"), Href: page},
	}
	if k.LastUsedAt != nil {
		ask.Facts = append(ask.Facts, web.Fact{Label: i18n.T(ctx, "Last used"), At: *k.LastUsedAt})
	}
	if k.RotatedTo != "" {
		ask.Warning = i18n.T(ctx, "Its successor %s is another key, and stays as it is.", k.RotatedTo)
	}
	return c.site.Confirm(w, r, web.Page{Title: i18n.T(ctx, "Revoke this key?"), Lead: k.Name, Status: status,
		Crumbs: []web.Link{keysCrumb(ctx), {Text: k.Name, Href: page}}}, ask)
}

// revokeKey revokes a key.
func (c *Console) revokeKey(w http.ResponseWriter, r *http.Request, form url.Values) error {
	id := r.PathValue("id")
	reason := reasonField(r.Context())
	reason.Value = strings.TrimSpace(form.Get("reason"))
	_, err := c.Service.Revoke(r.Context(), id, reason.Value)
	if _, marked := web.Mark(err, &reason); marked {
		return c.renderRevocation(w, r, http.StatusUnprocessableEntity, reason)
	}
	return redirect(w, r, keysPath+"/"+id, i18n.T(r.Context(), "The key is revoked. No gateway takes it any more."), err)
}
