package remote

import (
	"context"
	"errors"
	"sync"

	"github.com/go-kit/kit/sd/lb"
)

// Outcome is how a request ended at one instance.
type Outcome struct {
	Addr string
	Err  error
}

// Each sends a request to every instance by itself, most of them at most, all at once and none twice, and tells what each has
// answered, in the order of discovery. It returns an error for a service of which no instance is known.
func (c *Client) Each(ctx context.Context, r Request, most int) ([]Outcome, error) {
	endpoints, err := c.endpointer.Endpoints()
	if err != nil || len(endpoints) == 0 {
		return nil, c.failure(ctx, &unreachable{cause: errors.Join(lb.ErrNoEndpoints, err), unsent: true})
	}
	outcomes := make([]Outcome, min(len(endpoints), most))
	var asked sync.WaitGroup
	for i := range outcomes {
		asked.Go(func() {
			response, err := endpoints[i](ctx, attemptRequest{request: r, leaving: true, at: &outcomes[i].Addr})
			if err == nil {
				err = response.(*Response).Data.Close()
			} else {
				err = c.failure(ctx, err)
			}
			outcomes[i].Err = err
		})
	}
	asked.Wait()
	return outcomes, nil
}
