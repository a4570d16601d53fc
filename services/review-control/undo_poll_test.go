package reviewcontrol_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// TestUndoAfterThePageHasRefreshedItself: the button to undo leads to the mail that it brings back, also once the page has asked how far
// the mails are, and with the filter that the page had.
func TestUndoAfterThePageHasRefreshedItself(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.queued(3)
	path := "/drafts/" + id.String()
	for i := 2; i >= 0; i-- {
		o.post(path+"/decide", form(t, o.get(path+"/targets/"+string(rune('0'+i))), i, "approved", ""))
	}
	field := func(page, name string) string {
		found := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("no %s in %s", name, page)
		}
		return found[1]
	}
	page := o.get(path + "?q=hub.example")
	poll := regexp.MustCompile(`hx-get="([^"]*/progress[^"]*)"`).FindStringSubmatch(page)
	if poll == nil || !strings.Contains(poll[1], "q=hub.example") {
		t.Fatalf("the page asks %q", poll)
	}
	part := o.send(asAda, "GET", path+"/progress", "", "", "HX-Request", "true").Body.String()
	if got := field(part, "back"); got != "" {
		t.Errorf("back to %q", got)
	}
	w := o.post(path+"/undo", url.Values{"action": {field(part, "action")}, "back": {field(part, "back")}})
	has(t, o.get(w.Header().Get("Location")), ">Approve</button>", "!No more mails", "Contact 0")
}
