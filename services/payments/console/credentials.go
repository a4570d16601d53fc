package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/payments/credentials"
)

// credentialsPath is the address of the list of credentials.
const credentialsPath = "/admin/credentials"

// upToCredentials leads from a credential's page to the list.
func upToCredentials(ctx context.Context) web.Link {
	return web.Link{Text: i18n.T(ctx, "Payment credentials"), Href: credentialsPath}
}

// mountCredentials registers the pages about credentials, each with the role that it needs.
func (c *Console) mountCredentials(mux *http.ServeMux) {
	for pattern, page := range map[string]web.Handler{
		"GET /admin/credentials":                  c.credentials,
		"GET /admin/credentials/new":              c.newCredential,
		"POST /admin/credentials":                 c.addCredential,
		"GET /admin/credentials/{id}":             c.onCredential(c.credential),
		"GET /admin/credentials/{id}/rotate":      c.onCredential(c.rotation),
		"POST /admin/credentials/{id}/rotate":     c.onCredential(c.rotateCredential),
		"POST /admin/credentials/{id}/activate":   c.onCredential(c.activateCredential),
		"GET /admin/credentials/{id}/deactivate":  c.onCredential(c.deactivation),
		"POST /admin/credentials/{id}/deactivate": c.onCredential(c.deactivateCredential),
	} {
		c.site.Handle(mux, pattern, web.Role(admin), page)
	}
}

// onCredential is a page about one credential.
func (c *Console) onCredential(page func(http.ResponseWriter, *http.Request, credentials.Credential) error) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, ok := schema.ParseID(r.PathValue("id"))
		if !ok {
			return fault.New(fault.NotFound, "There is no such credential.")
		}
		one, err := c.Credentials.Inspect(r.Context(), id)
		if err != nil {
			return err
		}
		return page(w, r, one)
	}
}

// credentialsPage is the list, of all credentials or of the active ones.
type credentialsPage struct {
	Choices []web.Choice
	List    []credentialView
	All     bool
}

// credentialView is a credential on a page.
type credentialView struct{ credentials.Credential }

// Page is the address of the credential's own page.
func (v credentialView) Page() string { return credentialsPath + "/" + v.ID.String() }

// Badge is the credential's state.
func (v credentialView) Badge() web.Badge {
	if v.Active {
		return web.Badge{Kind: "good", Text: i18n.N("Active")}
	}
	return web.Badge{Text: i18n.N("Not used")}
}

// EnvBadge warns where money moves.
func (v credentialView) EnvBadge() web.Badge {
	if v.Env == credentials.Production {
		return web.Badge{Kind: "warn", Text: string(v.Env)}
	}
	return web.Badge{Kind: "info", Text: string(v.Env)}
}

// credentials lists them, newest first.
func (c *Console) credentials(w http.ResponseWriter, r *http.Request) error {
	ctx, p := r.Context(), credentialsPage{All: r.URL.Query().Get("show") != "active"}
	list, err := c.Credentials.List(ctx, credentials.Filter{ActiveOnly: !p.All})
	if err != nil {
		return err
	}
	for _, one := range list {
		p.List = append(p.List, credentialView{one})
	}
	p.Choices = []web.Choice{{Text: i18n.T(ctx, "All"), Href: credentialsPath, Active: p.All, Count: -1},
		{Text: i18n.T(ctx, "Active"), Href: credentialsPath + "?show=active", Active: !p.All, Count: -1}}
	return c.site.Render(w, r, "credentials", web.Page{Title: i18n.T(ctx, "Payment credentials"),
		Lead: i18n.T(ctx, "What payment providers know Hub by."), Data: p})
}

// credential shows one, without its secret.
func (c *Console) credential(w http.ResponseWriter, r *http.Request, one credentials.Credential) error {
	return c.site.Render(w, r, "credential", web.Page{Title: titleOf(r.Context(), one), Lead: one.Name(), Data: credentialView{one},
		Crumbs: []web.Link{upToCredentials(r.Context())}})
}

// titleOf is the heading of a credential's page.
func titleOf(ctx context.Context, one credentials.Credential) string {
	return i18n.T(ctx, "Credential %s", one.ID)
}

// credentialForm is what a provider has given. What was typed is never sent back.
type credentialForm struct {
	Action, Button, Keep, Problem string
	// Place are provider and environment; empty where they are given.
	Place            []*web.Field
	ClientID, Secret web.Field
}

// formOf has the two fields that adding and rotating have in common. Neither is ever filled in again: a secret that
// was typed does not come back to the browser.
func formOf(ctx context.Context) *credentialForm {
	return &credentialForm{Keep: credentialsPath,
		ClientID: web.Field{Name: "client_id", Label: i18n.T(ctx, "Client id"), Required: true, MaxLength: credentials.MaxValue,
			Autocomplete: "off", Hint: i18n.T(ctx, "As the provider shows it. A part of it is shown here later, so that two can be told apart.")},
		Secret: web.Field{Name: "secret", Label: i18n.T(ctx, "Secret key"), Type: "password", Required: true, MaxLength: credentials.MaxValue,
			Autocomplete: "new-password", Hint: i18n.T(ctx, "It is kept encrypted, and never shown again.")}}
}

// newForm is the form that adds a credential, with its provider and its environment.
func newForm(ctx context.Context) *credentialForm {
	f := formOf(ctx)
	f.Action, f.Button = credentialsPath, i18n.T(ctx, "Add the credential")
	provider := &web.Field{Name: "provider", Label: i18n.T(ctx, "Provider"), Type: "select", Value: credentials.NicePay}
	for _, name := range credentials.Providers() {
		provider.Options = append(provider.Options, web.Option{Value: name, Text: name})
	}
	env := &web.Field{Name: "env", Label: i18n.T(ctx, "Environment"), Type: "select", Value: string(credentials.Sandbox)}
	env.Options = []web.Option{{Value: string(credentials.Sandbox), Text: i18n.T(ctx, "sandbox: no money moves")},
		{Value: string(credentials.Production), Text: i18n.T(ctx, "production: money moves")}}
	f.Place = []*web.Field{provider, env}
	return f
}

// read takes what was given, and keeps the place alone for the form.
func (f *credentialForm) read(form url.Values) credentials.Values {
	for _, field := range f.Place {
		field.Value = form.Get(field.Name)
	}
	return credentials.Values{ClientID: strings.TrimSpace(form.Get("client_id")), Secret: strings.TrimSpace(form.Get("secret"))}
}

// marked shows what is wrong with the form; false for an error that is none of it.
func (f *credentialForm) marked(err error) (marked bool) {
	f.Problem, marked = web.Mark(err, append(f.Place, &f.ClientID, &f.Secret)...)
	return marked
}

// newCredential shows the empty form.
func (c *Console) newCredential(w http.ResponseWriter, r *http.Request) error {
	return c.renderForm(w, r, 0, i18n.T(r.Context(), "Add a credential"), newForm(r.Context()))
}

// renderForm shows a form, with status 422 or 409 when something is wrong with it.
func (c *Console) renderForm(w http.ResponseWriter, r *http.Request, status int, title string, f *credentialForm) error {
	return c.site.Render(w, r, "credential_form", web.Page{Title: title, Status: status, Data: f,
		Crumbs: []web.Link{upToCredentials(r.Context())}})
}

// addCredential does what the form asks for. A second active credential of an environment is a conflict: it is to be
// rotated.
func (c *Console) addCredential(w http.ResponseWriter, r *http.Request) error {
	form, err := web.Form(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	f, title := newForm(ctx), i18n.T(ctx, "Add a credential")
	given := f.read(form)
	added, err := c.Credentials.Add(ctx, form.Get("provider"), credentials.Env(form.Get("env")), given)
	switch {
	case f.marked(err):
		return c.renderForm(w, r, http.StatusUnprocessableEntity, title, f)
	case fault.Is(err, fault.Conflict):
		f.Problem = fault.From(err).Message
		return c.renderForm(w, r, http.StatusConflict, title, f)
	}
	return back(w, r, credentialView{added}.Page(), i18n.T(ctx, "The credential is added. New orders use it."), err)
}

// rotationForm asks for what takes a credential's place. Provider and environment stay.
func rotationForm(ctx context.Context, one credentials.Credential) *credentialForm {
	f := formOf(ctx)
	page := credentialView{one}.Page()
	f.Action, f.Button, f.Keep = page+"/rotate", i18n.T(ctx, "Rotate the credential"), page
	return f
}

// rotationTitle is the heading of the form.
func rotationTitle(ctx context.Context, one credentials.Credential) string {
	return i18n.T(ctx, "Rotate the credential of %s", one.Name())
}

// rotation shows the form.
func (c *Console) rotation(w http.ResponseWriter, r *http.Request, one credentials.Credential) error {
	return c.renderForm(w, r, 0, rotationTitle(r.Context(), one), rotationForm(r.Context(), one))
}

// rotateCredential goes on to the new credential's page.
func (c *Console) rotateCredential(w http.ResponseWriter, r *http.Request, one credentials.Credential) error {
	form, err := web.Form(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	f := rotationForm(ctx, one)
	next, err := c.Credentials.Rotate(ctx, one.ID, f.read(form))
	if f.marked(err) {
		return c.renderForm(w, r, http.StatusUnprocessableEntity, rotationTitle(ctx, one), f)
	}
	page := credentialView{one}.Page()
	if err == nil {
		page = credentialView{next}.Page()
	}
	return back(w, r, page, i18n.T(ctx, "The credential is rotated. Orders from before keep the one that they were made with."), err)
}

// activateCredential lets new orders use a credential of before.
func (c *Console) activateCredential(w http.ResponseWriter, r *http.Request, one credentials.Credential) error {
	_, err := c.Credentials.Activate(r.Context(), one.ID)
	return back(w, r, credentialView{one}.Page(), i18n.T(r.Context(), "New orders use the credential."), err)
}

// typedField asks for what the credential is for.
func typedField(ctx context.Context, one credentials.Credential) web.Field {
	return web.Field{Name: "confirm", Label: i18n.T(ctx, "Type %s to confirm", one.Name()), Required: true, MaxLength: 100,
		Autofocus: true, Autocomplete: "off"}
}

// deactivation asks for confirmation.
func (c *Console) deactivation(w http.ResponseWriter, r *http.Request, one credentials.Credential) error {
	return c.renderDeactivation(w, r, 0, one, typedField(r.Context(), one))
}

// renderDeactivation shows the confirmation, again with the problem when another text was typed.
func (c *Console) renderDeactivation(w http.ResponseWriter, r *http.Request, status int, one credentials.Credential,
	typed web.Field,
) error {
	ctx, page := r.Context(), credentialView{one}.Page()
	return c.site.Confirm(w, r,
		web.Page{Title: i18n.T(ctx, "Deactivate this credential?"), Lead: one.Name(), Status: status,
			Crumbs: []web.Link{upToCredentials(ctx), {Text: titleOf(ctx, one), Href: page}}},
		web.Confirmation{
			Warning: i18n.T(ctx, "No order can be made for %s until another credential is active.", one.Name()),
			Text:    i18n.T(ctx, "Orders that were made with it keep it: deposits and refunds go on. To replace it, rotate it."),
			Facts: []web.Fact{{Label: i18n.T(ctx, "For"), Value: one.Name()}, {Label: i18n.T(ctx, "Client id"), Value: one.ClientIDMask},
				{Label: i18n.T(ctx, "Added"), At: one.CreatedAt}},
			Action: page + "/deactivate", Fields: []web.Field{typed}, Button: i18n.T(ctx, "Deactivate"),
			Keep: web.Link{Text: i18n.T(ctx, "Keep it active"), Href: page},
		})
}

// deactivateCredential leaves new orders of the environment without a credential.
func (c *Console) deactivateCredential(w http.ResponseWriter, r *http.Request, one credentials.Credential) error {
	form, err := web.Form(r)
	if err != nil {
		return err
	}
	typed := typedField(r.Context(), one)
	typed.Value = strings.TrimSpace(form.Get("confirm"))
	_, err = c.Credentials.Deactivate(r.Context(), one.ID, typed.Value)
	if _, marked := web.Mark(err, &typed); marked {
		return c.renderDeactivation(w, r, http.StatusUnprocessableEntity, one, typed)
	}
	return back(w, r, credentialView{one}.Page(), i18n.T(r.Context(), "The credential is not used any more."), err)
}
