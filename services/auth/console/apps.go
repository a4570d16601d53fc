package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/auth/apps"
)

// appsPath is the list of apps; the pages of an app lie below it, at its code.
const appsPath = "/admin/apps"

// appsCrumb leads from the page of an app back to the list.
func appsCrumb(ctx context.Context) web.Link {
	return web.Link{Text: i18n.T(ctx, "Apps"), Href: appsPath}
}

// appsPage is a page of the list of apps.
type appsPage struct {
	Finder web.Finder
	Apps   []apps.Listed
	Pager  web.Pager
	Search string
}

// appBadge is the badge of a status.
// The badge template translates the text, which is why it is only marked here (i18n.N). Pages call it as appstate.
func appBadge(s apps.Status) web.Badge {
	return map[apps.Status]web.Badge{
		apps.Active:    {Kind: "good", Text: i18n.N("Active")},
		apps.Suspended: {Kind: "warn", Text: i18n.N("Suspended")},
		apps.Revoked:   {Kind: "bad", Text: i18n.N("Revoked")},
	}[s]
}

// apps lists apps that are searched for, or of one status.
// The list pages by keyset pagination: after is the code of the last app of the page before.
func (c *Console) apps(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	at := listStateOf(r, appsPath, everything, string(apps.Active), string(apps.Suspended), string(apps.Revoked))
	f := apps.Filter{Search: at.search, Status: apps.Status(at.show), After: at.after, Limit: web.RowsOnPage}
	if at.show == everything {
		f.Status = ""
	}
	list, next, err := c.Apps.List(ctx, f)
	if err != nil {
		return err
	}
	p := appsPage{Apps: list, Search: at.search, Pager: at.pager(ctx, i18n.T(ctx, "More apps"), next),
		Finder: at.finder(i18n.T(ctx, "Code or name"), i18n.T(ctx, "Which apps"),
			web.Link{Text: i18n.T(ctx, "Create an app"), Href: appsPath + "/_new"},
			[2]string{everything, i18n.T(ctx, "All")}, [2]string{string(apps.Active), i18n.T(ctx, "Active")},
			[2]string{string(apps.Suspended), i18n.T(ctx, "Suspended")}, [2]string{string(apps.Revoked), i18n.T(ctx, "Revoked")})}
	return c.site.Render(w, r, "apps", web.Page{Title: i18n.T(ctx, "Apps"),
		Lead: i18n.T(ctx, "Other services that call Hub's API for their users."), Data: p, Keys: listKeys(ctx, i18n.T(ctx, "app"))})
}

// appForm is what an app is asked to be.
type appForm struct {
	// Action is where the form is sent to; Version the one of the app that it was made of, 0 for a new one.
	Action  string
	Version int
	Code    web.Field

	// The names of the fields are those of the members that the service's violations name, so that web.Mark finds them.
	Name, RedirectURLs, Origins, Scopes, LinkMode web.Field
	Limits                                        []*web.Field
	// Problem is what is wrong and belongs to no field. Keep is the page that the form can be left for, without saving.
	Problem, Button, Keep string
	// Open unfolds the limits, because one of them is refused.
	Open bool
}

// formOf is the form with settings as they stand.
func formOf(ctx context.Context, s apps.Settings) *appForm {
	limits := s.Limits
	if limits == (apps.Limits{}) {
		limits = apps.DefaultLimits()
	}
	f := &appForm{
		Name: web.Field{Name: "name", Label: i18n.T(ctx, "Name"), Value: s.Name, Required: true, MaxLength: apps.MaxName, Autocomplete: "off",
			Hint: i18n.T(ctx, "Users read it when they are asked whether their account may be linked.")},
		RedirectURLs: web.Field{Name: "redirect_urls", Label: i18n.T(ctx, "Redirect URLs"), Type: "textarea", Rows: 3,
			Value: lines(s.RedirectURLs), Placeholder: "https://shop.example/back",
			Hint: i18n.T(ctx, "One a line. Browsers are sent back to these alone, and they are compared letter by letter.")},
		Origins: web.Field{Name: "origins", Label: i18n.T(ctx, "Origins"), Type: "textarea", Rows: 3, Value: lines(s.Origins),
			Placeholder: "https://shop.example",
			Hint:        i18n.T(ctx, "One a line. Messages about orders go to these alone; without one they may go anywhere.")},
		Scopes: web.Field{Name: "scopes", Label: i18n.T(ctx, "Scopes"), Type: "checks", Values: s.Scopes},
		LinkMode: web.Field{Name: "link_mode", Label: i18n.T(ctx, "A user's account is linked"), Type: "select",
			Value: cmp.Or(string(s.LinkMode), string(apps.Consent)),
			Options: []web.Option{{Value: string(apps.Consent), Text: i18n.T(ctx, "when the user allows it")},
				{Value: string(apps.Confirm), Text: i18n.T(ctx, "when the app has also confirmed that it was the same user")}},
			Hint: i18n.T(ctx, "Confirming is advised for apps that may pay: a link that somebody else was sent does not work then.")},
		Limits: limitFields(ctx, nil, limits),
	}
	for _, scope := range apps.Scopes() {
		f.Scopes.Options = append(f.Scopes.Options, web.Option{Value: scope, Text: scope, Hint: i18n.From(ctx).Text(appScopeHints[scope])})
	}
	return f
}

// appScopeHints say what a scope of an app allows, by its code.
var appScopeHints = map[string]string{"pay:read": i18n.N("see its orders"), "pay:write": i18n.N("make and cancel orders"),
	"pay:refund": i18n.N("pay back")}

// lines is a list as a text area has it.
func lines(list []string) string { return strings.Join(list, "\n") }

// fields are those that can be wrong.
func (f *appForm) fields() []*web.Field {
	return append(f.Limits, &f.Code, &f.Name, &f.RedirectURLs, &f.Origins, &f.Scopes, &f.LinkMode)
}

// read takes over what the form was filled in with.
// The text areas hold one address a line. An address has no white space, so strings.Fields splits them and drops empty lines.
func (f *appForm) read(form url.Values) apps.Settings {
	for _, field := range f.fields() {
		field.Value = form.Get(field.Name)
	}
	f.Scopes.Values = form["scopes"]
	return apps.Settings{Name: strings.TrimSpace(f.Name.Value), RedirectURLs: strings.Fields(f.RedirectURLs.Value),
		Origins: strings.Fields(f.Origins.Value), Scopes: f.Scopes.Values, LinkMode: apps.LinkMode(f.LinkMode.Value), Limits: limitsOf(f.Limits)}
}

// marked shows what is wrong with the form; false for an error that is none of it.
func (f *appForm) marked(err error) bool {
	rest, marked := web.Mark(err, f.fields()...)
	f.Problem, f.Open = rest, anyProblem(f.Limits)
	return marked
}

// newAppForm is the empty form of a new app.
func newAppForm(ctx context.Context) *appForm {
	f := formOf(ctx, apps.Settings{})
	f.Action, f.Button, f.Keep = appsPath, i18n.T(ctx, "Create the app"), appsPath
	f.Code = web.Field{Name: "service_code", Label: i18n.T(ctx, "Code"), Required: true, MaxLength: apps.MaxCode, Autofocus: true,
		Autocomplete: "off", Placeholder: "shop",
		Hint: i18n.T(ctx,
			"It names the app in its tokens and in the audit log, and cannot be changed: a-z, 0-9 and single . _ - between them.")}
	return f
}

// newApp shows the form of a new app.
// Its page is at _new, which cannot be the code of an app.
func (c *Console) newApp(w http.ResponseWriter, r *http.Request) error {
	return c.renderAppForm(w, r, 0, newAppForm(r.Context()))
}

// renderAppForm shows the form of a new app, or of one that is edited, which has a version.
func (c *Console) renderAppForm(w http.ResponseWriter, r *http.Request, status int, f *appForm) error {
	ctx := r.Context()
	page := web.Page{Title: i18n.T(ctx, "Create an app"), Status: status, Data: f, Crumbs: []web.Link{appsCrumb(ctx)}}
	if f.Action != appsPath {
		code := r.PathValue("code")
		page.Title, page.Crumbs = i18n.T(ctx, "Edit %s", code), append(page.Crumbs, web.Link{Text: code, Href: f.Keep})
	}
	return c.site.Render(w, r, "app_form", page)
}

// createApp creates an app. A code that is taken is said at its field.
func (c *Console) createApp(w http.ResponseWriter, r *http.Request, form url.Values) error {
	f := newAppForm(r.Context())
	settings := f.read(form)
	a, err := c.Apps.Create(r.Context(), strings.TrimSpace(f.Code.Value), settings)
	if f.marked(err) {
		return c.renderAppForm(w, r, http.StatusUnprocessableEntity, f)
	}
	if fault.Is(err, fault.Conflict) {
		f.Code.Error = fault.From(err).Message
		return c.renderAppForm(w, r, http.StatusConflict, f)
	}
	return redirect(w, r, appsPath+"/"+a.Code, i18n.T(r.Context(), "The app is created. Issue its secret next."), err)
}

// editForm is the form of an app, made of a version of it.
func editForm(ctx context.Context, a apps.App, version int) *appForm {
	f := formOf(ctx, a.Settings)
	page := appsPath + "/" + a.Code
	f.Action, f.Button, f.Keep, f.Version = page+"/edit", i18n.T(ctx, "Save"), page, version
	return f
}

// editApp shows the form of an app.
func (c *Console) editApp(w http.ResponseWriter, r *http.Request) error {
	a, err := c.Apps.Inspect(r.Context(), r.PathValue("code"))
	if err != nil {
		return err
	}
	return c.renderAppForm(w, r, 0, editForm(r.Context(), a.App, a.Version))
}

// saveApp changes an app, unless somebody else has changed the version that the form was made of.
// This is optimistic locking: the form holds the version, and another one in the store is E_CONFLICT, for which the form stays as it was
// filled in. A version that is no number is read as -1, which no app has.
func (c *Console) saveApp(w http.ResponseWriter, r *http.Request, form url.Values) error {
	ctx, code, version := r.Context(), r.PathValue("code"), wholeNumber(form.Get("version"))
	f := editForm(ctx, apps.App{Code: code}, version)
	_, err := c.Apps.Edit(ctx, code, version, f.read(form))
	if f.marked(err) {
		return c.renderAppForm(w, r, http.StatusUnprocessableEntity, f)
	}
	if fault.Is(err, fault.Conflict) {
		now, lost := c.Apps.Inspect(ctx, code)
		switch {
		case lost != nil:
			return lost
		case now.Status == apps.Revoked: // which no form changes
		case f.differs(ctx, formOf(ctx, now.Settings)):
			f.Version = now.Version
			f.Problem = i18n.T(ctx, "Somebody else has changed the app meanwhile. Where it differs from what you typed, the field says "+
				"what it is now. If you save again, yours takes its place.")
			return c.renderAppForm(w, r, http.StatusConflict, f)
		default: // the same form once more
			err = nil
		}
	}
	return redirect(w, r, appsPath+"/"+code, i18n.T(ctx, "The app is changed."), err)
}

// differs tells whether the form was filled in otherwise than an app is now, and says at each such field how that is.
func (f *appForm) differs(ctx context.Context, now *appForm) (differs bool) {
	theirs := now.fields()
	for i, field := range f.fields() {
		if is := shownValue(*theirs[i]); is != shownValue(*field) {
			differs, field.Error = true, i18n.T(ctx, "It is empty now.")
			if is != "" {
				field.Error = i18n.T(ctx, "It is now: %s", is)
			}
		}
	}
	f.Open = anyProblem(f.Limits)
	return differs
}

// shownValue is what a field holds, in one line.
func shownValue(f web.Field) string {
	for _, o := range f.Options {
		if f.Type == "select" && o.Value == f.Value {
			return o.Text
		}
	}
	if f.Type == "checks" {
		return strings.Join(slices.Sorted(slices.Values(f.Values)), ", ")
	}
	return strings.Join(strings.Fields(f.Value), " ")
}
