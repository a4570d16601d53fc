package overview

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/web"
	"hub.internal/pkg/web/i18n"
)

// detail is what pages tell of a row's detail. Other writers of the log may have put anything there: what is not of the form is absent.
type detail struct {
	SQL   string `json:"sql"`
	Draft string `json:"draft_id"`
	// Index is that of a mail of the draft, To its address.
	Index *int   `json:"index"`
	To    string `json:"to_email"`
	// Order is the code of an order, App that of an app, Key the id of an API key.
	Order string `json:"order"`
	App   string `json:"app"`
	// Refused is what the caller was told.
	Refused *audit.Told `json:"refused"`
}

// detailOf reads the detail of a row. One member that is of another form does not cost the others.
func detailOf(text string) (d detail) {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &members) != nil {
		return d
	}
	for name, into := range map[string]any{"sql": &d.SQL, "draft_id": &d.Draft, "index": &d.Index, "to_email": &d.To, "order": &d.Order,
		"app": &d.App, "refused": &d.Refused} {
		if raw, is := members[name]; is {
			_ = json.Unmarshal(raw, into)
		}
	}
	if _, is := schema.ParseID(d.Draft); !is {
		d.Draft = ""
	}
	return d
}

// about leads to what the row is about: a mail as its page counts it, a draft, an order or an app; nothing for other rows.
func (d detail) about(ctx context.Context) web.Link {
	switch {
	case d.Draft != "" && d.Index != nil && *d.Index >= 0:
		l := web.Link{Text: i18n.T(ctx, "Draft %s, mail %d", d.Draft, *d.Index+1),
			Href: "/drafts/" + d.Draft + "/targets/" + strconv.Itoa(*d.Index)}
		if d.To != "" {
			l.Text += " · " + d.To
		}
		return l
	case d.Draft != "":
		return web.Link{Text: i18n.T(ctx, "Draft %s", d.Draft), Href: "/drafts/" + d.Draft}
	case d.Order != "":
		return web.Link{Text: i18n.T(ctx, "Order %s", d.Order), Href: "/admin/orders/" + url.PathEscape(d.Order)}
	case d.App != "":
		return web.Link{Text: i18n.T(ctx, "App %s", d.App), Href: "/admin/apps/" + url.PathEscape(d.App)}
	}
	return web.Link{}
}

// told is what the caller was told; empty where nothing was refused.
func (d detail) told() string {
	if d.Refused == nil {
		return ""
	}
	return d.Refused.Message
}
