package console

import (
	"net/http"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/services/auth/apps"
)

type appPage struct {
	apps.Inspected
	Secrets, Webhooks []secretRow
	Overlap           web.Field
}

// secretRow is a secret as it is at a moment.
type secretRow struct {
	apps.Secret
	Live bool
}

// Badge is the app's state.
func (p appPage) Badge() web.Badge { return appBadge(p.Status) }

// Rotates tells that there is one secret that is good, so that another can take its place.
func (p appPage) Rotates() bool { return good(p.Secrets) == 1 && p.Status != apps.Revoked }

// Issues tells that there is none.
func (p appPage) Issues() bool { return good(p.Secrets) == 0 && p.Status != apps.Revoked }

// RotatesWebhook tells that the app has a secret, and not two webhook secrets that are good.
func (p appPage) RotatesWebhook() bool {
	return good(p.Webhooks) < 2 && len(p.Secrets)+len(p.Webhooks) > 0 && p.Status != apps.Revoked
}

func good(secrets []secretRow) (n int) {
	for _, s := range secrets {
		if s.Live {
			n++
		}
	}
	return n
}

func (c *Console) app(w http.ResponseWriter, r *http.Request) error { return c.renderApp(w, r, 0, "") }

func (c *Console) renderApp(w http.ResponseWriter, r *http.Request, status int, overlapProblem string) error {
	a, err := c.Apps.Inspect(r.Context(), r.PathValue("code"))
	if err != nil {
		return err
	}
	p := appPage{Inspected: a, Overlap: overlapField("The old secret stays good for")}
	p.Overlap.Error = overlapProblem
	p.Secrets, p.Webhooks = c.secretRows(a.Secrets), c.secretRows(a.Webhooks)
	return c.site.Render(w, r, "app", web.Page{Title: a.Name, Lead: a.Code, Status: status, Data: p, Crumbs: []web.Link{upToApps}})
}

func (c *Console) secretRows(secrets []apps.Secret) (rows []secretRow) {
	for _, s := range secrets {
		rows = append(rows, secretRow{s, s.Live(c.Now())})
	}
	return rows
}

func (c *Console) suspension(w http.ResponseWriter, r *http.Request) error {
	return c.renderSuspension(w, r, 0, reasonField())
}

func (c *Console) renderSuspension(w http.ResponseWriter, r *http.Request, status int, reason web.Field) error {
	a, err := c.Apps.Inspect(r.Context(), r.PathValue("code"))
	if err != nil {
		return err
	}
	page := appsPath + "/" + a.Code
	return c.site.Confirm(w, r,
		web.Page{Title: "Suspend this app?", Lead: a.Code, Status: status, Crumbs: []web.Link{upToApps, {Text: a.Name, Href: page}}},
		web.Confirmation{
			Text:  "Its calls are refused until it is resumed. Its secrets and the accounts that are linked to it stay.",
			Facts: appFacts(a), Action: page + "/suspend", Fields: []web.Field{reason},
			Button: "Suspend", Keep: web.Link{Text: "Leave it active", Href: page},
		})
}

func appFacts(a apps.Inspected) []web.Fact {
	return []web.Fact{{Label: "App", Value: a.Name}, {Label: "Code", Value: a.Code}, {Label: "Linked accounts", Value: web.Number(a.Links)}}
}

func (c *Console) suspendApp(w http.ResponseWriter, r *http.Request) error {
	form, err := web.Form(r)
	if err != nil {
		return err
	}
	reason := reasonField()
	reason.Value = strings.TrimSpace(form.Get("reason"))
	_, err = c.Apps.Suspend(r.Context(), r.PathValue("code"), reason.Value)
	if _, marked := web.Mark(err, &reason); marked {
		return c.renderSuspension(w, r, http.StatusUnprocessableEntity, reason)
	}
	return back(w, r, appsPath+"/"+r.PathValue("code"), "The app is suspended.", err)
}

func (c *Console) resumeApp(w http.ResponseWriter, r *http.Request) error {
	_, err := c.Apps.Resume(r.Context(), r.PathValue("code"))
	return back(w, r, appsPath+"/"+r.PathValue("code"), "The app may call again.", err)
}

// typedField asks for the code of what is ended for good.
func typedField(code string) web.Field {
	return web.Field{
		Name: "confirm", Label: "Type " + code + " to confirm", Required: true, MaxLength: apps.MaxCode, Autofocus: true, Autocomplete: "off",
	}
}

func (c *Console) appRevocation(w http.ResponseWriter, r *http.Request) error {
	reason := reasonField()
	reason.Autofocus = false
	return c.renderAppRevocation(w, r, 0, typedField(r.PathValue("code")), reason)
}

func (c *Console) renderAppRevocation(w http.ResponseWriter, r *http.Request, status int, typed, reason web.Field) error {
	a, err := c.Apps.Inspect(r.Context(), r.PathValue("code"))
	if err != nil {
		return err
	}
	page := appsPath + "/" + a.Code
	return c.site.Confirm(w, r,
		web.Page{Title: "Revoke this app?", Lead: a.Code, Status: status, Crumbs: []web.Link{upToApps, {Text: a.Name, Href: page}}},
		web.Confirmation{
			Warning: "This cannot be taken back, and the code cannot be used for another app.",
			Text:    "Its calls are refused from then on, its secrets are destroyed, and the accounts that are linked to it are linked no more.",
			Facts:   appFacts(a), Action: page + "/revoke", Fields: []web.Field{typed, reason},
			Button: "Revoke", Keep: web.Link{Text: "Keep the app", Href: page},
		})
}

func (c *Console) revokeApp(w http.ResponseWriter, r *http.Request) error {
	form, err := web.Form(r)
	if err != nil {
		return err
	}
	code := r.PathValue("code")
	typed, reason := typedField(code), reasonField()
	typed.Value, reason.Value = strings.TrimSpace(form.Get("confirm")), strings.TrimSpace(form.Get("reason"))
	_, err = c.Apps.Revoke(r.Context(), code, typed.Value, reason.Value)
	if _, marked := web.Mark(err, &typed, &reason); marked {
		return c.renderAppRevocation(w, r, http.StatusUnprocessableEntity, typed, reason)
	}
	return back(w, r, appsPath+"/"+code, "The app is revoked. Its secrets are destroyed.", err)
}

func (c *Console) issueSecret(w http.ResponseWriter, r *http.Request) error {
	issued, err := c.Apps.IssueSecret(r.Context(), r.PathValue("code"))
	return c.renderSecret(w, r, "The secret is issued", issued, err)
}

func (c *Console) rotateSecret(w http.ResponseWriter, r *http.Request) error {
	form, err := web.Form(r)
	if err != nil {
		return err
	}
	issued, err := c.Apps.RotateSecret(r.Context(), r.PathValue("code"), overlap(form))
	if problem := web.Problems(err)["overlap"]; problem != "" {
		return c.renderApp(w, r, http.StatusUnprocessableEntity, problem)
	}
	return c.renderSecret(w, r, "The secret is rotated", issued, err)
}

func (c *Console) rotateWebhookSecret(w http.ResponseWriter, r *http.Request) error {
	issued, err := c.Apps.RotateWebhookSecret(r.Context(), r.PathValue("code"))
	page := appsPath + "/" + r.PathValue("code")
	if err != nil {
		return back(w, r, page, "", err)
	}
	p := issuedPage{Text: "Notifications to the app are signed with it from now on. ", Next: web.Link{Text: "To the app", Href: page},
		Once: webhookOnce(issued)}
	if issued.Replaced != nil {
		p.Text += until("The old webhook secret", *issued.Replaced.ExpiresAt, c.Now())
	}
	return c.renderIssued(w, r, "The webhook secret is rotated", issued.Code, p, upToApps)
}

func webhookOnce(issued apps.Issued) web.Once {
	return web.Once{ID: "webhook", Label: "Webhook secret", Value: issued.Token.Reveal(),
		Hint: "Notifications are signed with it (Standard Webhooks). Keep it now, in a safe place: it is not shown again."}
}

func (c *Console) renderSecret(w http.ResponseWriter, r *http.Request, title string, issued apps.Issued, err error) error {
	page := appsPath + "/" + r.PathValue("code")
	if err != nil {
		return back(w, r, page, "", err)
	}
	p := issuedPage{Text: "The app signs its tokens with it (HS256, kid " + issued.ID + "). ", Next: web.Link{Text: "To the app", Href: page},
		Once: web.Once{ID: "secret", Label: "Shared secret", Value: issued.Token.Reveal(),
			Hint: "Keep it now, in a safe place: it is not shown again."}}
	if issued.Webhook != nil {
		p.Second = new(webhookOnce(*issued.Webhook))
	}
	if issued.Replaced != nil {
		p.Text += until("The old secret", *issued.Replaced.ExpiresAt, c.Now())
	}
	return c.renderIssued(w, r, title, issued.Code, p, upToApps)
}

func (c *Console) secretRevocation(w http.ResponseWriter, r *http.Request) error {
	a, err := c.Apps.Inspect(r.Context(), r.PathValue("code"))
	if err != nil {
		return err
	}
	page, id := appsPath+"/"+a.Code, r.PathValue("id")
	for _, s := range a.Secrets {
		if s.ID != id {
			continue
		}
		crumbs := []web.Link{upToApps, {Text: a.Name, Href: page}}
		return c.site.Confirm(w, r, web.Page{Title: "Revoke this secret?", Lead: id, Crumbs: crumbs}, web.Confirmation{
			Text:   "What is signed with it is refused from then on. It cannot be taken back.",
			Facts:  []web.Fact{{Label: "App", Value: a.Name}, {Label: "Secret", Value: id}, {Label: "Issued", At: s.CreatedAt}},
			Action: page + "/secrets/" + id + "/revoke", Button: "Revoke", Keep: web.Link{Text: "Keep the secret", Href: page},
		})
	}
	return fault.New(fault.NotFound, "The app has no such secret any more.")
}

func (c *Console) revokeSecret(w http.ResponseWriter, r *http.Request) error {
	_, err := c.Apps.RevokeSecret(r.Context(), r.PathValue("code"), r.PathValue("id"))
	return back(w, r, appsPath+"/"+r.PathValue("code"), "The secret is destroyed.", err)
}
