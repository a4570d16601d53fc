package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"hub.internal/pkg/fault"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
	"hub.internal/services/auth/apps"
)

// appPage is an app with its secrets.
// Its methods tell the template which of the forms it may show; the service judges again what is sent.
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
// An app has two at most (DESIGN.md), so the form is not shown while an old one still overlaps.
func (p appPage) Rotates() bool { return countLive(p.Secrets) == 1 && p.Status != apps.Revoked }

// Issues tells that there is none.
// A first secret brings the first webhook secret with it.
func (p appPage) Issues() bool { return countLive(p.Secrets) == 0 && p.Status != apps.Revoked }

// RotatesWebhook tells that the app has a secret, and not two webhook secrets that are good.
// The service makes the first webhook secret together with the first shared one, so an app that has neither has nothing to rotate.
func (p appPage) RotatesWebhook() bool {
	return countLive(p.Webhooks) < 2 && len(p.Secrets)+len(p.Webhooks) > 0 && p.Status != apps.Revoked
}

// countLive is how many secrets are good at this moment.
func countLive(secrets []secretRow) (n int) {
	for _, s := range secrets {
		if s.Live {
			n++
		}
	}
	return n
}

// app shows an app.
func (c *Console) app(w http.ResponseWriter, r *http.Request) error { return c.renderApp(w, r, 0, "") }

// renderApp shows an app with what is wrong with the form of a rotation, if anything.
// E_NOT_FOUND for a code that no app has.
func (c *Console) renderApp(w http.ResponseWriter, r *http.Request, status int, overlapProblem string) error {
	ctx := r.Context()
	a, err := c.Apps.Inspect(ctx, r.PathValue("code"))
	if err != nil {
		return err
	}
	p := appPage{Inspected: a, Overlap: overlapField(ctx, i18n.T(ctx, "The old secret stays good for"))}
	p.Overlap.Error = overlapProblem
	p.Secrets, p.Webhooks = c.secretRows(a.Secrets), c.secretRows(a.Webhooks)
	return c.site.Render(w, r, "app", web.Page{Title: a.Name, Lead: a.Code, Status: status, Data: p, Crumbs: []web.Link{appsCrumb(ctx)}})
}

// secretRows are secrets as they are at this moment.
func (c *Console) secretRows(secrets []apps.Secret) (rows []secretRow) {
	for _, s := range secrets {
		rows = append(rows, secretRow{s, s.Live(c.Now())})
	}
	return rows
}

// suspension asks before an app is suspended.
func (c *Console) suspension(w http.ResponseWriter, r *http.Request) error {
	return c.renderSuspension(w, r, 0, reasonField(r.Context()))
}

// renderSuspension asks with the reason as it was typed.
func (c *Console) renderSuspension(w http.ResponseWriter, r *http.Request, status int, reason web.Field) error {
	ctx := r.Context()
	a, err := c.Apps.Inspect(ctx, r.PathValue("code"))
	if err != nil {
		return err
	}
	page := appsPath + "/" + a.Code
	return c.site.Confirm(w, r,
		web.Page{Title: i18n.T(ctx, "Suspend this app?"), Lead: a.Code, Status: status,
			Crumbs: []web.Link{appsCrumb(ctx), {Text: a.Name, Href: page}}},
		web.Confirmation{
			Text:  i18n.T(ctx, "Its calls are refused until it is resumed. Its secrets and the accounts that are linked to it stay."),
			Facts: appFacts(ctx, a), Action: page + "/suspend", Fields: []web.Field{reason},
			Button: i18n.T(ctx, "Suspend"), Keep: web.Link{Text: i18n.T(ctx, "Leave it active"), Href: page},
		})
}

// appFacts tell which app a confirmation is about.
func appFacts(ctx context.Context, a apps.Inspected) []web.Fact {
	return []web.Fact{{Label: i18n.T(ctx, "App"), Value: a.Name}, {Label: i18n.T(ctx, "Code"), Value: a.Code},
		{Label: i18n.T(ctx, "Linked accounts"), Value: web.Number(a.Links)}}
}

// suspendApp suspends an app, with a reason.
// Only E_VALIDATION is shown in the confirmation. An app that cannot be suspended is E_CONFLICT, which its page tells.
func (c *Console) suspendApp(w http.ResponseWriter, r *http.Request, form url.Values) error {
	reason := reasonField(r.Context())
	reason.Value = strings.TrimSpace(form.Get("reason"))
	_, err := c.Apps.Suspend(r.Context(), r.PathValue("code"), reason.Value)
	if _, marked := web.Mark(err, &reason); marked {
		return c.renderSuspension(w, r, http.StatusUnprocessableEntity, reason)
	}
	return redirect(w, r, appsPath+"/"+r.PathValue("code"), i18n.T(r.Context(), "The app is suspended."), err)
}

// resumeApp lets an app call again.
func (c *Console) resumeApp(w http.ResponseWriter, r *http.Request) error {
	_, err := c.Apps.Resume(r.Context(), r.PathValue("code"))
	return redirect(w, r, appsPath+"/"+r.PathValue("code"), i18n.T(r.Context(), "The app may call again."), err)
}

// typedField asks for the code of what is ended for good.
// The service compares what was typed with the code (E_VALIDATION), so a client without the page cannot skip it.
func typedField(ctx context.Context, code string) web.Field {
	return web.Field{
		Name: "confirm", Label: i18n.T(ctx, "Type %s to confirm", code), Required: true, MaxLength: apps.MaxCode, Autofocus: true,
		Autocomplete: "off",
	}
}

// appRevocation asks before an app is revoked for good.
func (c *Console) appRevocation(w http.ResponseWriter, r *http.Request) error {
	reason := reasonField(r.Context())
	// The code is asked for first, and a page has one autofocus.
	reason.Autofocus = false
	return c.renderAppRevocation(w, r, 0, typedField(r.Context(), r.PathValue("code")), reason)
}

// renderAppRevocation asks with what was typed.
func (c *Console) renderAppRevocation(w http.ResponseWriter, r *http.Request, status int, typed, reason web.Field) error {
	ctx := r.Context()
	a, err := c.Apps.Inspect(ctx, r.PathValue("code"))
	if err != nil {
		return err
	}
	page := appsPath + "/" + a.Code
	return c.site.Confirm(w, r,
		web.Page{Title: i18n.T(ctx, "Revoke this app?"), Lead: a.Code, Status: status,
			Crumbs: []web.Link{appsCrumb(ctx), {Text: a.Name, Href: page}}},
		web.Confirmation{
			Warning: i18n.T(ctx, "This cannot be taken back, and the code cannot be used for another app."),
			Text: i18n.T(ctx,
				"Its calls are refused from then on, its secrets are destroyed, and the accounts that are linked to it are linked no more."),
			Facts: appFacts(ctx, a), Action: page + "/revoke", Fields: []web.Field{typed, reason},
			Button: i18n.T(ctx, "Revoke"), Keep: web.Link{Text: i18n.T(ctx, "Keep the app"), Href: page},
		})
}

// revokeApp revokes an app, whose code was typed to confirm it.
func (c *Console) revokeApp(w http.ResponseWriter, r *http.Request, form url.Values) error {
	code := r.PathValue("code")
	typed, reason := typedField(r.Context(), code), reasonField(r.Context())
	typed.Value, reason.Value = strings.TrimSpace(form.Get("confirm")), strings.TrimSpace(form.Get("reason"))
	_, err := c.Apps.Revoke(r.Context(), code, typed.Value, reason.Value)
	if _, marked := web.Mark(err, &typed, &reason); marked {
		return c.renderAppRevocation(w, r, http.StatusUnprocessableEntity, typed, reason)
	}
	return redirect(w, r, appsPath+"/"+code, i18n.T(r.Context(), "The app is revoked. Its secrets are destroyed."), err)
}

// issueSecret issues the first secret of an app.
func (c *Console) issueSecret(w http.ResponseWriter, r *http.Request) error {
	issued, err := c.Apps.IssueSecret(r.Context(), r.PathValue("code"))
	return c.renderSecret(w, r, i18n.T(r.Context(), "The secret is issued"), issued, err)
}

// rotateSecret issues another secret, which the one before overlaps.
// An overlap that is out of bounds is E_VALIDATION and is shown at its field; any other refusal leads back to the app's page.
func (c *Console) rotateSecret(w http.ResponseWriter, r *http.Request, form url.Values) error {
	issued, err := c.Apps.RotateSecret(r.Context(), r.PathValue("code"), overlap(form))
	if problem := web.Problems(err)["overlap"]; problem != "" {
		return c.renderApp(w, r, http.StatusUnprocessableEntity, problem)
	}
	return c.renderSecret(w, r, i18n.T(r.Context(), "The secret is rotated"), issued, err)
}

// rotateWebhookSecret issues another secret that notifications are signed with.
// There is no overlap to choose: the old one is signed with beside the new one for 24 hours.
func (c *Console) rotateWebhookSecret(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	issued, err := c.Apps.RotateWebhookSecret(ctx, r.PathValue("code"))
	page := appsPath + "/" + r.PathValue("code")
	if err != nil {
		return redirect(w, r, page, "", err)
	}
	p := issuedPage{Text: i18n.T(ctx, "Notifications to the app are signed with it from now on.") + " ",
		Next: web.Link{Text: i18n.T(ctx, "To the app"), Href: page}, Once: webhookOnce(ctx, issued)}
	if issued.Replaced != nil {
		p.Text += expiryText(ctx, i18n.T(ctx, "The old webhook secret"), *issued.Replaced.ExpiresAt, c.Now())
	}
	return c.renderIssued(w, r, i18n.T(ctx, "The webhook secret is rotated"), issued.Code, p, appsCrumb(ctx))
}

// webhookOnce shows a webhook secret, this once.
func webhookOnce(ctx context.Context, issued apps.Issued) web.Once {
	return web.Once{ID: "webhook", Label: i18n.T(ctx, "Webhook secret"), Value: issued.Token.Reveal(),
		Hint: i18n.T(ctx, "Notifications are signed with it (Standard Webhooks). Keep it now, in a safe place: it is not shown again.")}
}

// renderSecret shows a secret that was issued, this once, with the webhook secret that was issued with it.
// It takes the error of issuing as well, which it turns into a message on the app's page: both forms end here.
func (c *Console) renderSecret(w http.ResponseWriter, r *http.Request, title string, issued apps.Issued, err error) error {
	ctx := r.Context()
	page := appsPath + "/" + r.PathValue("code")
	if err != nil {
		return redirect(w, r, page, "", err)
	}
	p := issuedPage{Text: i18n.T(ctx, "The app signs its tokens with it (HS256, kid %s).", issued.ID) + " ",
		Next: web.Link{Text: i18n.T(ctx, "To the app"), Href: page},
		Once: web.Once{ID: "secret", Label: i18n.T(ctx, "Shared secret"), Value: issued.Token.Reveal(),
			Hint: i18n.T(ctx, "Keep it now, in a safe place: it is not shown again.")}}
	if issued.Webhook != nil {
		p.Second = new(webhookOnce(ctx, *issued.Webhook))
	}
	if issued.Replaced != nil {
		p.Text += expiryText(ctx, i18n.T(ctx, "The old secret"), *issued.Replaced.ExpiresAt, c.Now())
	}
	return c.renderIssued(w, r, title, issued.Code, p, appsCrumb(ctx))
}

// secretRevocation asks before a secret is destroyed.
func (c *Console) secretRevocation(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	a, err := c.Apps.Inspect(ctx, r.PathValue("code"))
	if err != nil {
		return err
	}
	page, id := appsPath+"/"+a.Code, r.PathValue("id")
	for _, s := range a.Secrets {
		// A webhook secret cannot be revoked alone, so only shared secrets are looked at.
		if s.ID != id {
			continue
		}
		crumbs := []web.Link{appsCrumb(ctx), {Text: a.Name, Href: page}}
		return c.site.Confirm(w, r, web.Page{Title: i18n.T(ctx, "Revoke this secret?"), Lead: id, Crumbs: crumbs}, web.Confirmation{
			Text: i18n.T(ctx, "What is signed with it is refused from then on. It cannot be taken back."),
			Facts: []web.Fact{{Label: i18n.T(ctx, "App"), Value: a.Name}, {Label: i18n.T(ctx, "Secret"), Value: id},
				{Label: i18n.T(ctx, "Issued"), At: s.CreatedAt}},
			Action: page + "/secrets/" + id + "/revoke", Button: i18n.T(ctx, "Revoke"),
			Keep: web.Link{Text: i18n.T(ctx, "Keep the secret"), Href: page},
		})
	}
	return fault.New(fault.NotFound, "The app has no such secret any more.")
}

// revokeSecret destroys a secret.
func (c *Console) revokeSecret(w http.ResponseWriter, r *http.Request) error {
	_, err := c.Apps.RevokeSecret(r.Context(), r.PathValue("code"), r.PathValue("id"))
	return redirect(w, r, appsPath+"/"+r.PathValue("code"), i18n.T(r.Context(), "The secret is destroyed."), err)
}
