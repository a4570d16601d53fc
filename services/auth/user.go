package auth

import (
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hub.internal/pkg/schema"
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
	// InvitedUntil is when the user's invitation ends; nil when there is none.
	InvitedUntil *time.Time
	// Language is the code of the one in which the user wants the console; empty when they have not chosen.
	Language string
}

// UserState says where a user stands.
type UserState string

// The states of a user. Pending is one who has no password and has never signed in.
const (
	UserActive   UserState = "active"
	UserPending  UserState = "pending"
	UserDisabled UserState = "disabled"
)

// State is where the user stands.
func (u User) State() UserState {
	switch {
	case u.DisabledAt != nil:
		return UserDisabled
	case u.PasswordHash == "" && u.LastLogin == nil:
		return UserPending
	}
	return UserActive
}

// Administers tells whether the user is an administrator who can sign in.
func (u User) Administers() bool { return u.State() == UserActive && slices.Contains(u.Roles, Admin) }

// UserFilter says which users a list has.
type UserFilter struct {
	// Search is a part of the address or the name, or a whole id; empty finds all.
	Search string
	// State is empty for users in every state.
	State UserState
	// Administrators leaves out who does not have the role.
	Administrators bool
	// After is the address after which the list goes on; empty begins it.
	After string
	// Limit is how many users a page has, at most; 0 means 200.
	Limit int
}

// The roles of the console.
const (
	Reviewer = "reviewer"
	Admin    = "admin"
)

// Roles lists the roles that a user can have.
func Roles() []string { return []string{Reviewer, Admin} }

const (
	// MaxEmail bounds an address, in bytes.
	MaxEmail = 254
	// minPassword and MaxPassword bound a password, in characters and bytes: length is what counts
	// (NIST SP 800-63B), and the upper bound keeps hashing cheap to refuse.
	minPassword = 12
	MaxPassword = 512
)

// NewUser is what a new user is asked to be.
type NewUser struct {
	Email, Name string
	Roles       []string
}

// newUser makes a user as asked, or tells all that is wrong with the wish.
func newUser(id string, in NewUser, by string, now time.Time) (User, error) {
	var v schema.Violations
	roles := chosenRoles(&v, in.Roles)
	if !isAddress(in.Email) {
		v.Add("/e-mail", "format", "must be one plain address at a host with a dot, such as ada@example.com")
	}
	checkLine(&v, "name", in.Name, maxName)
	if err := v.Err(); err != nil {
		return User{}, err
	}
	return User{ID: id, Email: in.Email, Name: in.Name, Roles: roles, CreatedBy: by, CreatedAt: now}, nil
}

// chosenRoles returns the roles once each, in the order of Roles.
func chosenRoles(v *schema.Violations, asked []string) []string {
	known := Roles()
	asked = slices.Clone(asked)
	for i, r := range asked {
		r = strings.TrimSpace(r)
		asked[i] = r
		if !slices.Contains(known, r) {
			v.Add("/roles", "enum", "has the unknown role %q; the roles are %s", r, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(known, func(r string) bool { return !slices.Contains(asked, r) })
}

// isAddress judges an address: exactly one, as it is written, at a host with a dot, in ASCII.
func isAddress(text string) bool {
	a, err := mail.ParseAddress(text)
	if err != nil || a.Address != text || a.Name != "" || len(text) > MaxEmail || !ascii(text) || strings.ContainsAny(text, "\"[]() ") {
		return false
	}
	_, host, _ := strings.Cut(text, "@")
	return strings.Contains(strings.Trim(host, "."), ".")
}

// ascii tells that a text has characters of ASCII alone.
func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7e })
}

// goodPassword judges a new password.
func goodPassword(password, email string) error {
	switch {
	case utf8.RuneCountInString(password) < minPassword:
		return schema.Invalid("/password", "minLength", "must have at least %d characters", minPassword)
	case len(password) > MaxPassword:
		return schema.Invalid("/password", "maxBytes", "must have at most %d bytes", MaxPassword)
	case !utf8.ValidString(password) || strings.ContainsAny(password, "\x00\r\n"):
		return schema.Invalid("/password", "line", "must be one line of text")
	case strings.EqualFold(password, email):
		return schema.Invalid("/password", "isEmail", "must not be the e-mail address")
	}
	return nil
}

// account is what identifies a user at log-in: addresses are compared without case.
func account(email string) string { return strings.ToLower(strings.TrimSpace(email)) }
