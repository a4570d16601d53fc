package auth

import (
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// User is a person who may sign in to the console.
type User struct {
	ID    string
	Email string
	Name  string
	Roles []string
	// PasswordHash is in the form of PHC (argon2id); empty for a user who signs in through OIDC alone.
	PasswordHash string
	CreatedBy    string
	CreatedAt    time.Time
	// DisabledAt is nil for a user who may sign in.
	DisabledAt *time.Time
	LastLogin  *time.Time
}

// The roles of the console.
const (
	Reviewer = "reviewer"
	Admin    = "admin"
)

// Roles lists the roles that a user can have.
func Roles() []string { return []string{Reviewer, Admin} }

const (
	maxEmail = 254
	// minPassword and maxPassword bound a password, in characters and bytes: length is what counts
	// (NIST SP 800-63B), and the upper bound keeps hashing cheap to refuse.
	minPassword = 12
	maxPassword = 512
)

// NewUser is what a new user is asked to be.
type NewUser struct {
	Email, Name string
	Roles       []string
}

// newUser makes a user as asked, or tells all that is wrong with the wish.
func newUser(id string, in NewUser, by string, now time.Time) (User, error) {
	roles, wrong := chosenRoles(in.Roles)
	wrong = append(wrong, emailAddress(in.Email)...)
	wrong = append(wrong, line("name", in.Name, maxName)...)
	if len(wrong) > 0 {
		return User{}, refuse(wrong)
	}
	return User{ID: id, Email: in.Email, Name: in.Name, Roles: roles, CreatedBy: by, CreatedAt: now}, nil
}

// chosenRoles returns the roles once each, in the order of Roles.
func chosenRoles(asked []string) (roles, wrong []string) {
	known := Roles()
	asked = slices.Clone(asked)
	for i, r := range asked {
		r = strings.TrimSpace(r)
		asked[i] = r
		if !slices.Contains(known, r) {
			wrong = append(wrong, fmt.Sprintf("unknown role %q; the roles are %s", r, strings.Join(known, ", ")))
		}
	}
	return slices.DeleteFunc(known, func(r string) bool { return !slices.Contains(asked, r) }), wrong
}

// emailAddress judges an address: exactly one, as it is written, at a host with a dot, in ASCII.
func emailAddress(text string) []string {
	a, err := mail.ParseAddress(text)
	if err != nil || a.Address != text || a.Name != "" || len(text) > maxEmail || !ascii(text) {
		return []string{"e-mail must be one plain address, such as ada@example.com"}
	}
	if _, host, _ := strings.Cut(text, "@"); !strings.Contains(strings.Trim(host, "."), ".") || strings.ContainsAny(text, "\"[]() ") {
		return []string{"e-mail must be one plain address at a host with a dot, such as ada@example.com"}
	}
	return nil
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7e })
}

// goodPassword judges a new password.
func goodPassword(password, email string) error {
	switch {
	case utf8.RuneCountInString(password) < minPassword:
		return refuse([]string{fmt.Sprintf("the password must have at least %d characters", minPassword)})
	case len(password) > maxPassword:
		return refuse([]string{fmt.Sprintf("the password must have at most %d bytes", maxPassword)})
	case !utf8.ValidString(password) || strings.ContainsAny(password, "\x00\r\n"):
		return refuse([]string{"the password must be one line of text"})
	case strings.EqualFold(password, email):
		return refuse([]string{"the password must not be the e-mail address"})
	}
	return nil
}

// account is what identifies a user at log-in: addresses are compared without case.
func account(email string) string { return strings.ToLower(strings.TrimSpace(email)) }
