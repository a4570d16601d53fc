package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/postgres"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/service"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/write"
)

// orders is the program of a service that only tests have, built as every service is: it owns routes of
// the API, and logs in to the store as payments.
func orders() {
	os.Exit(service.Program[service.Settings]{Name: "payments", Short: "Orders for tests", Build: buildOrders,
		Migrate: func(ctx context.Context, ownerURL string) error {
			return postgres.MigrateAll(ctx, ownerURL, "payments", audit.Tables, write.Migrate)
		}}.Main())
}

func buildOrders(h *service.Host, _ service.Settings) error {
	o := orderBook{store: h.Store(), keys: write.New(h.Store(), write.Options{Service: "payments"})}
	h.Routes(o.routes()...)
	return nil
}

type orderBook struct {
	store *postgres.Pool
	keys  *write.Keys
}

type order struct {
	OrderID string `json:"orderId"`
	Amount  int64  `json:"amount"`
}

func (o orderBook) routes() []tool.APIRoute {
	id := schema.Required("orderId", schema.String("The order.", schema.Pattern("^[0-9]{1,9}$")))
	declare := func(name, method, path, scope, key string, success int, members ...schema.Property) tool.RouteDeclaration {
		return tool.RouteDeclaration{
			Declaration: tool.Declaration{
				Name:        name,
				Description: "Orders of the tests.",
				Scope:       scope,
				Input:       schema.Object(members...),
				Output: schema.FreeObject(
					"",
				),
				MaxBody: 64 << 10,
			},
			Method:      method,
			Path:        path,
			Success:     []int{success},
			Idempotency: key,
			Credential:  tool.KeyCredential,
		}
	}
	return append(o.appRoutes(),
		tool.NewRoute(declare("orders.create", "POST", "/v1/orders", "author", tool.KeyRequired, 201,
			schema.Required("amount", schema.Integer("Won.", schema.Range(1, 100_000_000)))), o.create),
		tool.NewRoute(declare("orders.get", "GET", "/v1/orders/{orderId}", "query", tool.KeyIgnored, 200, id), o.get),
		tool.NewRoute(declare("orders.redeliver", "POST", "/v1/orders/{orderId}/redeliver", "author", tool.KeyOptional, 202, id),
			func(_ context.Context, in struct {
				OrderID string `json:"orderId"`
			}) (map[string]string, error) {
				return map[string]string{"orderId": in.OrderID}, nil
			}),
		tool.NewRoute(declare("orders.latest", "POST", "/v1/orders/latest", "query", tool.KeyIgnored, 303), o.latest),
	)
}

func (o orderBook) create(ctx context.Context, in struct {
	Amount int64 `json:"amount"`
}) (tool.Result, error) {
	call, err := write.NewCall(ctx, "orders.create", time.Now())
	if err != nil {
		return tool.Result{}, err
	}
	r, err := o.keys.Once(ctx, call.Key, func(ctx context.Context, tx pgx.Tx) (tool.Result, audit.Entry, error) {
		var id int64
		if err := tx.QueryRow(ctx, `INSERT INTO payments.orders (amount) VALUES ($1) RETURNING id`, in.Amount).Scan(&id); err != nil {
			return tool.Result{}, audit.Entry{}, postgres.Explain(err, "payments")
		}
		answer, err := write.AnswerAs(201, order{strconv.FormatInt(id, 10), in.Amount}, 1)
		return answer, call.Entry(1, nil), err
	})
	if err != nil {
		return r, err
	}
	var made order
	if err := json.Unmarshal(r.Data, &made); err != nil {
		return r, err
	}
	r.Location = "/v1/orders/" + made.OrderID
	return r, nil
}

func (o orderBook) get(ctx context.Context, in struct {
	OrderID string `json:"orderId"`
}) (order, error) {
	made := order{OrderID: in.OrderID}
	err := o.store.QueryRow(ctx, `SELECT amount FROM payments.orders WHERE id = $1::bigint`, in.OrderID).Scan(&made.Amount)
	if err != nil {
		return made, fault.New(fault.NotFound, "There is no order %s.", in.OrderID).Because(err)
	}
	return made, nil
}

func (o orderBook) latest(ctx context.Context, _ struct{}) (tool.Result, error) {
	var id int64
	if err := o.store.QueryRow(ctx, `SELECT max(id) FROM payments.orders`).Scan(&id); err != nil {
		return tool.Result{}, postgres.Explain(err, "payments")
	}
	return tool.Result{Head: tool.Head{Count: 1, Location: fmt.Sprint("/v1/orders/", id)}, Data: []byte(`{}`)}, nil
}
