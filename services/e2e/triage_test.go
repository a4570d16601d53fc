package e2e_test

import (
	"fmt"
	"strings"
)

// Target is the mail at a place of the list: the one on the page, once its row was clicked where another one was
// there.
func (p *page) Target(place int) element {
	p.t.Helper()
	p.bring(fmt.Sprintf(`document.querySelectorAll("[data-row]")[%d]`, place))
	return p.role("", false, "article")
}

// bring clicks the row that an expression finds, unless its mail is on the page, and waits for that.
func (p *page) bring(expression string) {
	p.t.Helper()
	var index string // of another one than is there
	p.eventually("the list has "+expression, func() bool {
		return p.evaluate(`(() => {
			const row = `+expression+`;
			if (row.hasAttribute("aria-current")) return "";
			row.click();
			return row.dataset.row;
		})()`, &index) == nil
	})
	if index != "" {
		p.eventually("target "+index+" is on the page", func() bool { return p.at() == "t-"+index })
		p.Settle()
	}
}

// at is the id of the mail on the page: t- and its index.
func (p *page) at() (id string) {
	_ = p.evaluate(`document.querySelector("article.target")?.id ?? ""`, &id)
	return id
}

// rows is how many targets the page lists.
func (p *page) rows() (n int) {
	p.t.Helper()
	p.Evaluate(`document.querySelectorAll("[data-row]").length`, &n)
	return n
}

// Unfold opens what is folded away under a summary.
func (p *page) Unfold(summary string) {
	p.t.Helper()
	p.eventually(summary+" is there", func() bool {
		return p.evaluate(
			fmt.Sprintf(
				`[...document.querySelectorAll("summary")].find((s) => s.innerText.trim() === %q).parentElement.open = true`,
				summary,
			),
			nil,
		) == nil
	})
}

// Note is the field of a mail's note, which is folded away until somebody asks for it.
func (p *page) Note(mail element) element {
	p.t.Helper()
	note := p.role("Note", false, "textbox").In(mail)
	mail.call("function() { this.querySelector('details.why').open = true }", nil)
	return note
}

// LookThrough looks at every mail of the list that is left to decide as a reader does, row by row, and scrolls
// through each one's parts.
func (p *page) LookThrough() {
	p.t.Helper()
	var rows []int
	p.Evaluate(`[...document.querySelectorAll("[data-row]:not(.approved, .rejected)")].map((row) => Number(row.dataset.row))`, &rows)
	for _, index := range rows { // the list may begin elsewhere beside another mail
		p.bring(fmt.Sprintf(`document.querySelector('[data-row="%d"]')`, index))
		p.eventually(p.at()+" was shown", func() bool { p.read(); return p.isShown() })
	}
	p.Settle()
}

// SeesEnd waits until the page says that the last decision has ended the review, and what became of it. On a busy
// machine the mails have left before anybody reads that, and the page says so instead.
func (p *page) SeesEnd(outcome string) {
	p.t.Helper()
	p.eventually("the review has ended", func() bool {
		text := p.Text()
		return strings.Contains(text, strings.TrimSpace("That ends the review. "+outcome)) ||
			strings.Contains(text, "The review and the sending are over")
	})
}

// read scrolls through the mail on the page, down and, as it came, to its top again.
func (p *page) read() {
	p.t.Helper()
	_ = p.evaluate(`(async () => {
		const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
		const scrolls = (el) => el && el.scrollHeight > el.clientHeight && ["auto", "scroll"].includes(getComputedStyle(el).overflowY);
		const parts = [...document.querySelectorAll("article.target > header, article.target > .mail")].filter(scrolls);
		const page = document.scrollingElement;
		if (page.scrollHeight > page.clientHeight) parts.push(page);
		await drawn();
		for (const part of parts) {
			const step = Math.min(150, part.clientHeight - 80);
			for (let y = 0; y < part.scrollHeight - part.clientHeight + step; y += step) { part.scrollTop = y; await drawn(); }
			part.scrollTop = 0;
		}
	})()`, nil)
}

// isShown tells that the whole of the mail on the page has been in view.
func (p *page) isShown() (is bool) {
	_ = p.evaluate(`document.querySelector("article.target[data-shown]") !== null`, &is)
	return is
}
