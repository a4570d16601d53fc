package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/auth"
)

const usersPath = "/admin/users"

func usersCrumb(ctx context.Context) web.Link {
	return web.Link{Text: i18n.T(ctx, "Users"), Href: usersPath}
}

// usersPage is a page of the list of users, with a matrix of their roles.
type usersPage struct {
	Finder web.Finder
	Users  []userRow
	// Roles are the columns of the matrix.
	Roles  []string
	Pager  web.Pager
	Search string
	// Here is the page's own address.
	Here string
	// FromProvider tells that the log-in provider decides on roles.
	FromProvider bool
}

// userRow is a user as the administrator sees them.
type userRow struct {
	auth.User
	// This is the administrator who looks.
	This bool
	Now  time.Time
}

// Badge is where the user stands.
func (u userRow) Badge() web.Badge {
	switch {
	case u.State() == auth.UserDisabled:
		return web.Badge{Kind: "bad", Text: i18n.N("Disabled")}
	case u.State() == auth.UserActive:
		return web.Badge{Kind: "good", Text: i18n.N("Active")}
	case u.InvitedUntil == nil:
		return web.Badge{Kind: "", Text: i18n.N("Never signed in")}
	case u.InvitedUntil.Before(u.Now):
		return web.Badge{Kind: "warn", Text: i18n.N("Invitation too old")}
	}
	return web.Badge{Kind: "info", Text: i18n.N("Invited")}
}

// Has tells whether the user has the role.
func (u userRow) Has(role string) bool { return slices.Contains(u.Roles, role) }

// Had is what the matrix was made of.
func (u userRow) Had() string { return strings.Join(u.Roles, ",") }

// userRow is a user as the administrator of a request sees them.
func (c *Console) userRow(r *http.Request, u auth.User) userRow {
	who, _ := web.UserOf(r.Context())
	return userRow{u, u.ID == who.ID, c.Now()}
}

// users lists users that are searched for, or are in one state.
func (c *Console) users(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	at := listStateOf(r, usersPath, everything, string(auth.UserActive), string(auth.UserPending), string(auth.UserDisabled), admin)
	f := auth.UserFilter{Search: at.search, After: at.after, Limit: web.RowsOnPage}
	switch at.show {
	case everything:
	case admin:
		f.Administrators = true
	default:
		f.State = auth.UserState(at.show)
	}
	list, next, err := c.People.Users(ctx, f)
	if err != nil {
		return err
	}
	p := usersPage{Search: at.search, Roles: auth.Roles(), Here: at.String(), FromProvider: c.RolesFromProvider,
		Pager: at.pager(ctx, i18n.T(ctx, "More users"), next),
		Finder: at.finder(i18n.T(ctx, "Address, name or id"), i18n.T(ctx, "Which users"),
			web.Link{Text: i18n.T(ctx, "Invite a user"), Href: usersPath + "/new"},
			[2]string{everything, i18n.T(ctx, "All")}, [2]string{string(auth.UserActive), i18n.T(ctx, "Active")},
			[2]string{string(auth.UserPending), i18n.T(ctx, "Never signed in")}, [2]string{string(auth.UserDisabled), i18n.T(ctx, "Disabled")},
			[2]string{admin, i18n.T(ctx, "Administrators")})}
	for _, u := range list {
		p.Users = append(p.Users, c.userRow(r, u))
	}
	return c.site.Render(w, r, "users", web.Page{Title: i18n.T(ctx, "Users"),
		Lead: i18n.T(ctx, "Who may sign in to this console, and what they may do in it."), Data: p, Keys: listKeys(ctx, i18n.T(ctx, "user"))})
}

// setRoles takes a matrix: of each user the roles that the page showed, and those that are checked now.
func (c *Console) setRoles(w http.ResponseWriter, r *http.Request, form url.Values) error {
	to := web.LocalPath(form.Get("at"), usersPath)
	if bare, _, _ := strings.Cut(to, "?"); bare != usersPath {
		to = usersPath
	}
	ctx := r.Context()
	who, _ := web.UserOf(ctx)
	var changed []string
	for _, id := range form["user"][:min(len(form["user"]), web.RowsOnPage)] {
		had := hadOf(form, "had."+id)
		roles := form["roles."+id]
		if equalSets(had, roles) {
			continue
		}
		u, err := c.People.User(ctx, id)
		if err == nil {
			u, err = c.People.SetRolesOf(ctx, u.Email, had, roles)
		}
		if err != nil {
			if len(changed) > 0 && !fault.Is(err, fault.Internal) {
				f := fault.From(err)
				web.Wrong(w, r, i18n.T(ctx, "Changed: %s. Then it stopped: %s", strings.Join(changed, ", "), f.Message))
				return web.Go(w, r, to)
			}
			return redirect(w, r, to, "", err)
		}
		changed = append(changed, u.Email)
		if u.ID == who.ID && !slices.Contains(u.Roles, admin) {
			to = "/"
		}
	}
	switch len(changed) {
	case 0:
		web.Done(w, r, i18n.T(ctx, "Nothing was changed."))
	case 1:
		web.Done(w, r, i18n.T(ctx, "The roles of %s are changed. In force within two seconds.", changed[0]))
	default:
		web.Done(w, r, i18n.T(ctx, "The roles of %s users are changed. In force within two seconds.", web.Number(len(changed))))
	}
	return web.Go(w, r, to)
}

// hadOf is the list that a page was made of, by its hidden field; never nil, which is what nobody has looked at.
func hadOf(form url.Values, field string) []string {
	return append([]string{}, strings.FieldsFunc(form.Get(field), func(r rune) bool { return r == ',' })...)
}

// equalSets tells that two lists hold the same strings.
func equalSets(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

// inviteForm is what a new user is asked to be.
type inviteForm struct {
	Email, Name, Roles web.Field
	Problem            string
}

// roleNames are the roles as people read them; any other is read by its code.
var roleNames = map[string]string{auth.Reviewer: i18n.N("Reviewer"), auth.Admin: i18n.N("Administrator")}

// roleName is a role as people read it.
func roleName(role string) string { return cmp.Or(roleNames[role], role) }

// newInviteForm is the form as it was filled in.
func newInviteForm(ctx context.Context, form url.Values) *inviteForm {
	f := &inviteForm{
		Email: web.Field{Name: "e-mail", Label: i18n.T(ctx, "E-mail"), Type: "email", Value: form.Get("e-mail"), Required: true,
			MaxLength: auth.MaxEmail, Autofocus: true, Autocomplete: "off", Placeholder: "name@example.com",
			Hint: i18n.T(ctx, "The user signs in with it. It cannot be changed later.")},
		Name: web.Field{Name: "name", Label: i18n.T(ctx, "Name"), Value: form.Get("name"), Required: true, MaxLength: 100,
			Autocomplete: "off"},
		Roles: web.Field{Name: "roles", Label: i18n.T(ctx, "Roles"), Type: "checks", Values: form["roles"]},
	}
	for _, role := range auth.Roles() {
		f.Roles.Options = append(f.Roles.Options, web.Option{Value: role, Text: role, Hint: i18n.From(ctx).Text(roleHints[role])})
	}
	return f
}

var roleHints = map[string]string{
	auth.Reviewer: i18n.N("decides on drafts: what is sent, and what is not"),
	auth.Admin:    i18n.N("users, API keys, apps and the suppression list"),
}

// newUser shows the form of a new user.
func (c *Console) newUser(w http.ResponseWriter, r *http.Request) error {
	return c.renderInviteForm(w, r, 0, newInviteForm(r.Context(), url.Values{"roles": {auth.Reviewer}}))
}

// renderInviteForm shows the form with what is wrong with it.
func (c *Console) renderInviteForm(w http.ResponseWriter, r *http.Request, status int, f *inviteForm) error {
	return c.site.Render(w, r, "user_new", web.Page{Title: i18n.T(r.Context(), "Invite a user"), Status: status, Data: f,
		Crumbs: []web.Link{usersCrumb(r.Context())},
		Lead:   i18n.T(r.Context(), "Hub sends no mail about it: you get a link and give it to the user, who chooses a password there.")})
}

// inviteUser makes a user and shows the link of the invitation, this once.
func (c *Console) inviteUser(w http.ResponseWriter, r *http.Request, form url.Values) error {
	f := newInviteForm(r.Context(), form)
	u, i, err := c.People.Invite(r.Context(), auth.NewUser{
		Email: strings.TrimSpace(f.Email.Value), Name: strings.TrimSpace(f.Name.Value), Roles: f.Roles.Values,
	})
	if rest, marked := web.Mark(err, &f.Email, &f.Name, &f.Roles); marked {
		f.Problem = rest
		return c.renderInviteForm(w, r, http.StatusUnprocessableEntity, f)
	}
	if fault.Is(err, fault.Conflict) {
		f.Email.Error = fault.From(err).Message
		return c.renderInviteForm(w, r, http.StatusConflict, f)
	}
	if err != nil {
		return err
	}
	return c.renderInvitation(w, r, i18n.T(r.Context(), "The user is invited"), u, i)
}

// renderInvitation shows the link of an invitation, this once.
func (c *Console) renderInvitation(w http.ResponseWriter, r *http.Request, title string, u auth.User, i auth.Invitation) error {
	ctx := r.Context()
	p := issuedPage{
		Text: i18n.T(ctx, "Give it to %s in a way that nobody else reads: whoever uses it first chooses the password. "+
			"It works once, until %s UTC.", u.Name, i.ExpiresAt.UTC().Format("2006-01-02 15:04")),
		Once: web.Once{ID: "secret", Label: i18n.T(ctx, "Link"), Value: i.Link(c.PublicURL),
			Hint: i18n.T(ctx, "It is not shown again. If it is lost, make another one on the user's page.")},
		Next: web.Link{Text: i18n.T(ctx, "To the user"), Href: usersPath + "/" + u.ID},
	}
	return c.renderIssued(w, r, title, u.Email, p, usersCrumb(ctx))
}

// userPage is a user with their sessions.
type userPage struct {
	userRow
	AllRoles []string
	Sessions []sessionRow
}

// May tells that the user has a way in, or can be given one.
func (p userPage) May() bool { return p.State() != auth.UserDisabled }

// user shows a user.
func (c *Console) user(w http.ResponseWriter, r *http.Request) error {
	u, err := c.People.User(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	sessions, err := c.People.Sessions(r.Context(), u.ID)
	if err != nil {
		return err
	}
	p := userPage{userRow: c.userRow(r, u), AllRoles: auth.Roles()}
	for _, s := range sessions {
		p.Sessions = append(p.Sessions, sessionRowOf(r, s))
	}
	return c.site.Render(w, r, "user", web.Page{Title: u.Name, Lead: u.Email, Data: p, Crumbs: []web.Link{usersCrumb(r.Context())}})
}

// onUser is an action on the user in the address of the page.
func (c *Console) onUser(do func(http.ResponseWriter, *http.Request, auth.User) error) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		u, err := c.People.User(r.Context(), r.PathValue("id"))
		if err != nil {
			return err
		}
		return do(w, r, u)
	}
}

// inviteAgain makes another link for a user who has lost the first, or the password.
func (c *Console) inviteAgain(w http.ResponseWriter, r *http.Request, u auth.User) error {
	u, i, err := c.People.InviteAgain(r.Context(), u.Email)
	if err != nil {
		return redirect(w, r, usersPath+"/"+r.PathValue("id"), "", err)
	}
	return c.renderInvitation(w, r, i18n.T(r.Context(), "A new link"), u, i)
}

// disabling asks before a user is disabled.
func (c *Console) disabling(w http.ResponseWriter, r *http.Request, u auth.User) error {
	ctx := r.Context()
	page := usersPath + "/" + u.ID
	ask := web.Confirmation{
		Text: i18n.T(ctx, "The user is signed out everywhere within two seconds and cannot sign in until an administrator enables them again."),
		Facts: []web.Fact{
			{Label: i18n.T(ctx, "User"), Value: u.Name}, {Label: i18n.T(ctx, "E-mail"), Value: u.Email},
			{Label: i18n.T(ctx, "Roles"), Value: cmp.Or(strings.Join(u.Roles, ", "), i18n.T(ctx, "none"))},
		},
		Action: page + "/disable", Button: i18n.T(ctx, "Disable"), Keep: web.Link{Text: i18n.T(ctx, "Keep the user"), Href: page},
	}
	if who, _ := web.UserOf(ctx); who.ID == u.ID {
		ask.Warning = i18n.T(ctx, "This is you: you are signed out at once, and another administrator has to let you in again.")
	}
	return c.site.Confirm(w, r, web.Page{Title: i18n.T(ctx, "Disable this user?"), Lead: u.Email,
		Crumbs: []web.Link{usersCrumb(ctx), {Text: u.Name, Href: page}}}, ask)
}

// disable keeps a user out and ends their sessions.
func (c *Console) disable(w http.ResponseWriter, r *http.Request, u auth.User) error {
	_, err := c.People.Disable(r.Context(), u.Email)
	return redirect(w, r, usersPath+"/"+u.ID, i18n.T(r.Context(), "%s is disabled and signed out.", u.Email), err)
}

// enable lets a user in again.
func (c *Console) enable(w http.ResponseWriter, r *http.Request, u auth.User) error {
	_, err := c.People.Enable(r.Context(), u.Email)
	return redirect(w, r, usersPath+"/"+u.ID, i18n.T(r.Context(), "%s may sign in again.", u.Email), err)
}

// endSessionOf ends one session of a user, or all of them.
func (c *Console) endSessionOf(w http.ResponseWriter, r *http.Request, u auth.User) error {
	form, err := web.Form(r)
	if err != nil {
		return err
	}
	page := usersPath + "/" + u.ID
	switch id := form.Get("session"); id {
	case "":
		return fault.New(fault.Validation, "Say which session to end.")
	case everything:
		n, err := c.People.EndSessions(r.Context(), u.ID, "")
		return redirect(w, r, page, web.PluralIn(r.Context(), n, "browser is signed out.", "browsers are signed out."), err)
	default:
		return redirect(w, r, page, i18n.T(r.Context(), "That browser is signed out."), c.People.SignOut(r.Context(), u.ID, id))
	}
}
