package remote

import (
	"context"
	"errors"
	"sync"

	"github.com/go-kit/kit/sd/lb"
)

// Told is what one instance has answered.
type Told struct {
	Addr string
	Err  error
}

// Each sends a request to every instance by itself, most of them at most, all at once and none twice, and tells what each has
// answered, in the order of discovery. It returns an error for a service of which no instance is known.
func (c *Client) Each(ctx context.Context, r Request, most int) ([]Told, error) {
	endpoints, err := c.endpointer.Endpoints()
	if err != nil || len(endpoints) == 0 {
		return nil, c.failure(ctx, &unreachable{cause: errors.Join(lb.ErrNoEndpoints, err), unsent: true})
	}
	told := make([]Told, min(len(endpoints), most))
	var asked sync.WaitGroup
	for i := range told {
		asked.Go(func() {
			response, err := endpoints[i](ctx, attemptRequest{request: r, leaving: true, at: &told[i].Addr})
			if err == nil {
				err = response.(*Response).Data.Close()
			} else {
				err = c.failure(ctx, err)
			}
			told[i].Err = err
		})
	}
	asked.Wait()
	return told, nil
}
