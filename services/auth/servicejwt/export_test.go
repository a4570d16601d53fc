package servicejwt

import "time"

// Judge opens the rules of claims to their tests.
func Judge(claims []byte, audience string, now time.Time) (Claims, error) {
	var m members
	if err := m.object(claims); err != nil {
		return Claims{}, err
	}
	return validateClaims(m, audience, now)
}
