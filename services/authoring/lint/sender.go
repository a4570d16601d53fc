package lint

import (
	"fmt"
	"strings"

	"hub.internal/pkg/tool"
)

// private are the domains of providers of private mailboxes. They sign for their own servers alone (DMARC): a mail that Hub sends
// from such an address is refused, or taken for spam.
var private = strings.Fields(`gmail.com googlemail.com naver.com daum.net hanmail.net kakao.com nate.com korea.com yahoo.com yahoo.co.kr
	yahoo.co.jp ymail.com hotmail.com hotmail.co.kr outlook.com outlook.kr live.com msn.com icloud.com me.com mac.com aol.com gmx.com
	gmx.net gmx.de web.de mail.com mail.ru yandex.ru yandex.com proton.me protonmail.com qq.com 163.com 126.com sina.com foxmail.com
	docomo.ne.jp ezweb.ne.jp softbank.ne.jp`)

// Private is the domain of an address at a provider of private mailboxes; empty for any other, and for none.
func Private(email *string) string {
	if email == nil {
		return ""
	}
	domain := strings.ToLower((*email)[strings.LastIndexByte(*email, '@')+1:])
	for _, p := range private {
		if domain == p {
			return domain
		}
	}
	return ""
}

// Sender warns of a draft that does not say whom it is from, or whose mails will look forged. nil is no name, and no address.
func Sender(name, email *string) *tool.Warning {
	if domain := Private(email); domain != "" {
		return &tool.Warning{Rule: "draft.sender", Message: "senderEmail is at " + domain + ", which lets its own servers alone send for its " +
			"addresses (DMARC): recipients' servers will refuse the mails or take them for spam; save the draft with an address of your own " +
			"domain, or without senderEmail for Hub's own"}
	}
	if email != nil && *email != "" {
		return nil
	}
	from := "Hub's own name and address"
	if name != nil && *name != "" {
		from = fmt.Sprintf("%.60q with Hub's own address", *name)
	}
	return &tool.Warning{Rule: "draft.sender", Message: "there is no senderEmail: recipients see the mail come from " + from +
		", which queue_for_review answers as from; save the draft with senderName and senderEmail to have it come from somebody else"}
}

// Doubts name what in a mail a reviewer should look at: markdown and unfinished of its texts, sender of its address.
func Doubts(subject, body string, sender *string) (list []string) {
	for _, d := range []struct{ name, found string }{{"markdown", Markdown(body)}, {"unfinished", Unfinished(subject + "\n" + body)},
		{"sender", Private(sender)}} {
		if d.found != "" {
			list = append(list, d.name)
		}
	}
	return list
}
