package nicepay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"

	json "github.com/go-json-experiment/json"

	"hub.internal/services/payments/credentials"
	"hub.internal/services/payments/provider"
)

// answerLimit bounds what the vendor may answer.
const answerLimit = 1 << 20

// unknown is an outcome that is not known, and why. The reason never holds what was sent.
func unknown(format string, args ...any) error {
	return fmt.Errorf("%w: %s", provider.ErrUnknown, fmt.Sprintf(format, args...))
}

// call sends one request. The body is nil for a GET. It returns ErrNotSent as long as there was no connection to send
// it on, ErrUnknown from then on, and a DeclinedError when the vendor does not know the credential.
func (p *Provider) call(ctx context.Context, cred credentials.Unsealed, method, path string, body any) (raw []byte, err error) {
	if cred.Env == credentials.Production && p.base != nil && !p.production {
		return nil, fmt.Errorf("%w: a credential of production is not shown to a stand-in for the vendor", provider.ErrNotSent)
	}
	// Not http.NoBody: net/http asks by itself a second time when it can, and then a broken connection is not seen.
	sent, length := io.MultiReader(), 0
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("%w: the request cannot be written", provider.ErrNotSent)
		}
		sent, length = io.MultiReader(bytes.NewReader(b)), len(b)
	}
	// A request can have arrived only if there was a connection to send it on: this is what tells ErrNotSent from ErrUnknown.
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	r, err := http.NewRequestWithContext(ctx, method, p.host(cred.Env)+path, sent)
	if err != nil {
		return nil, fmt.Errorf("%w: the request cannot be made", provider.ErrNotSent)
	}
	r.ContentLength = int64(length)
	r.SetBasicAuth(cred.Reveal())
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "Hub-Payments/1")
	if body != nil {
		r.Header.Set("Content-Type", "application/json;charset=utf-8")
	}
	response, err := p.client.Do(r)
	if err != nil {
		if !connected.Load() {
			return nil, fmt.Errorf("%w: %s", provider.ErrNotSent, reason(err))
		}
		return nil, unknown("%s", reason(err))
	}
	defer response.Body.Close()
	raw, err = io.ReadAll(io.LimitReader(response.Body, answerLimit+1))
	switch code := response.StatusCode; {
	case err != nil:
		return nil, unknown("the answer broke off: %s", reason(err))
	case len(raw) > answerLimit:
		return nil, unknown("the answer is longer than %d bytes", answerLimit)
	case (code == http.StatusUnauthorized || code == http.StatusForbidden) && !saysWhy(raw):
		return nil, &provider.DeclinedError{Code: fmt.Sprint(code), Message: "the provider does not accept the credential"}
	case code >= 300 && (code < 400 || code > http.StatusNotFound):
		return nil, unknown("the status is %d", code)
	}
	return raw, nil
}

// saysWhy tells whether an answer has a result code of the vendor's, which says more than its status.
func saysWhy(raw []byte) bool {
	var a struct {
		ResultCode string `json:"resultCode"`
	}
	return json.Unmarshal(raw, &a) == nil && a.ResultCode != ""
}

// reason is what went wrong, without the address that was called.
func reason(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}
