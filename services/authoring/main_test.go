package authoring_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-kit/kit/sd"
	"github.com/jackc/pgx/v5/pgxpool"

	"hub.internal/pkg/audit"
	"hub.internal/pkg/caller"
	"hub.internal/pkg/caller/callertest"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hubtest"
	"hub.internal/pkg/hubtest/contract"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/service"
	"hub.internal/pkg/tool"
	"hub.internal/services/authoring"
	"hub.internal/services/authoring/postgres"
	"hub.internal/services/authoring/preview"
	"hub.internal/services/authoring/query"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

// house is the service on a store of its own, beside a query service that the test speaks for.
type house struct {
	t     testing.TB
	db    hubtest.WriteStoreDB
	store *postgres.Store
	clock *hubtest.Clock
	// super reads and breaks what no role of Hub's may.
	super *pgxpool.Pool
	url   string
	// client is the gateway's, review that of review-control.
	client, review *remote.Client
	query          *neighbour
	logs           *bytes.Buffer
}

// neighbour is a query service that knows a few people.
type neighbour struct {
	mu sync.Mutex
	// reasons are the answers by address; without one it is a verified contact.
	reasons map[string][]string
	// meant are who may have been meant, by address.
	meant   map[string]authoring.Meant
	down    error
	calls   int
	targets int
	// known are the ids that the source has, by kind; nil has all.
	known map[string][]int64
	// contacts are all verified addresses with their partners, and owners the partners of brands and campaigns; nil has anybody.
	contacts map[string]int64
	owners   map[string]map[int64]int64
	// names are those of contacts, by address, where a draft calls them otherwise.
	names map[string][]string
	// idsAsked is how often it was asked about ids.
	idsAsked int
	// rowsAsked is how often it was asked for rows, and rowsDown what it says then.
	rowsAsked int
	rowsDown  error
	// rowBytes is what each row has beside its id; none where it is 0.
	rowBytes int
}

// judge is what the source says of a recipient where it knows its contacts.
func (n *neighbour) judge(r authoring.Recipient) (reasons []string, meant *authoring.Meant) {
	email := strings.ToLower(r.Email)
	if strings.HasSuffix(email, "@member.example") {
		reasons = append(reasons, "b2c_member")
	}
	if !slices.Contains(n.known["partner"], r.PartnerID) {
		reasons = append(reasons, "unknown_partner")
	} else if n.contacts[email] != r.PartnerID {
		reasons = append(reasons, "not_a_verified_contact")
	}
	for _, kind := range []string{"brand", "campaign"} {
		if owner, is := n.owners[kind][r.PartnerID]; is && len(reasons) > 0 && meant == nil {
			meant = &authoring.Meant{Kind: authoring.Kind(kind), PartnerID: owner}
		}
	}
	return reasons, meant
}

type checked struct {
	Targets []authoring.Recipient `json:"targets"`
}

type refusal struct {
	Index   int              `json:"index"`
	Reasons []string         `json:"reasons"`
	Meant   *authoring.Meant `json:"meant,omitempty"`
}

type idsAsked struct {
	Kind string  `json:"kind"`
	IDs  []int64 `json:"ids"`
}

type otherKind struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

type idsAnswered struct {
	Unknown int         `json:"unknown"`
	First   []int64     `json:"first"`
	Others  []otherKind `json:"others"`
}

func (n *neighbour) checkIDs(_ context.Context, in idsAsked) (idsAnswered, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.idsAsked++
	out := idsAnswered{First: []int64{}, Others: []otherKind{}}
	others := map[string]int{}
	for _, id := range in.IDs {
		if n.known == nil || slices.Contains(n.known[in.Kind], id) {
			continue
		}
		if out.Unknown++; out.Unknown <= 10 {
			out.First = append(out.First, id)
		}
		for kind, ids := range n.known {
			if slices.Contains(ids, id) {
				others[kind]++
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(others)) {
		out.Others = append(out.Others, otherKind{kind, others[kind]})
	}
	return out, n.down
}

type row struct {
	ID  int64          `json:"id"`
	Row map[string]any `json:"row"`
}

type rowsAnswered struct {
	Rows []row `json:"rows"`
}

// rows answers {"KIND_id": id} for each id that it knows.
func (n *neighbour) rows(_ context.Context, in idsAsked) (rowsAnswered, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := rowsAnswered{Rows: []row{}}
	for _, id := range in.IDs {
		if n.known == nil || slices.Contains(n.known[in.Kind], id) {
			out.Rows = append(out.Rows, row{id, map[string]any{in.Kind + "_id": id}})
			if n.rowBytes > 0 {
				out.Rows[len(out.Rows)-1].Row["text"] = strings.Repeat("x", n.rowBytes)
			}
		}
	}
	if len(in.IDs) > 10_000 {
		return rowsAnswered{}, fault.New(fault.Validation, "too many")
	}
	n.rowsAsked++
	return out, n.rowsDown
}

// renamed is a recipient whose contact has another name.
type renamed struct {
	Index int      `json:"index"`
	Names []string `json:"names"`
}

// answered is what the check answers.
type answered struct {
	Targets []refusal `json:"targets"`
	Named   []renamed `json:"named,omitempty"`
}

func (n *neighbour) check(_ context.Context, in checked) (answered, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls++
	n.targets += len(in.Targets)
	if n.down != nil {
		return answered{}, n.down
	}
	out, named := []refusal{}, []renamed(nil)
	for i, t := range in.Targets {
		if reasons, meant := n.judge(t); n.contacts != nil && reasons != nil {
			out = append(out, refusal{i, reasons, meant})
		}
		if names := n.names[t.Email]; names != nil && !slices.Contains(names, t.Name) {
			named = append(named, renamed{i, names})
		}
		if reasons := n.reasons[t.Email]; reasons != nil {
			r := refusal{Index: i, Reasons: reasons}
			if meant, there := n.meant[t.Email]; there {
				r.Meant = &meant
			}
			out = append(out, r)
		}
	}
	return answered{out, named}, nil
}

// call sets the names of contacts.
func (n *neighbour) call(names map[string][]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names = names
}

func (n *neighbour) say(down error, reasons map[string][]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down, n.reasons = down, reasons
}

// know sets the ids that the source has.
func (n *neighbour) know(ids map[string][]int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known = ids
}

func (n *neighbour) askedIDs() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.idsAsked
}

func (n *neighbour) asked() (calls, targets int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calls, n.targets
}

func newHouse(t testing.TB, change ...func(*authoring.Config)) *house {
	t.Helper()
	db := hubtest.MigratedStore(t, "authoring", postgres.Migrate)
	return newHouseOn(t, db, change...)
}

func newHouseOn(t testing.TB, db hubtest.WriteStoreDB, change ...func(*authoring.Config)) *house {
	t.Helper()
	h := &house{t: t, db: db, clock: hubtest.NewClock(time.Time{}), query: &neighbour{}, logs: &bytes.Buffer{}}
	var err error
	pool := hubtest.Pool(t, db.URL("authoring"))
	h.store = postgres.New(pool)
	if h.super, err = pgxpool.New(t.Context(), db.SuperuserURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.super.Close)
	quiet := slog.New(slog.DiscardHandler)
	check := rpc.Declaration{Path: "/internal/recipients/check", Takes: caller.Neighbour("authoring"), MaxBody: 8 << 20}
	ids := rpc.Declaration{Path: "/internal/ids/check", Takes: caller.Neighbour("authoring"), MaxBody: 8 << 20}
	rows := rpc.Declaration{Path: "/internal/rows", Takes: caller.Neighbour("authoring")}
	queryAddr := contract.Serve(
		t,
		"query",
		contract.Fake(t, "query", check, h.query.check),
		contract.Fake(t, "query", ids, h.query.checkIDs),
		contract.Fake(t, "query", rows, h.query.rows),
	)
	keys := callertest.Keys(t, "authoring", caller.Gateway, "review-control")
	config := authoring.Config{
		Store:     h.store,
		Source:    query.New(h.remote("query", queryAddr, keys)),
		PublicURL: "https://hub.example/",
		Now:       h.clock.Now,
	}
	for _, f := range change {
		f(&config)
	}
	mux := http.NewServeMux()
	log := audit.NewLog(pool, quiet)
	t.Cleanup(func() { _ = log.Close(context.Background()) })
	svc, internal := authoring.New(config), rpc.Server{Mux: mux, Keys: keys, Logger: slog.New(slog.NewJSONHandler(h.logs, nil))}
	service.Tools(internal, log, authoring.Tools(svc)...)
	service.Operations(internal, authoring.Operations(svc)...)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	h.url = server.URL
	h.client = h.remote("authoring", server.URL, callertest.Keys(t, caller.Gateway))
	h.review = h.remote("authoring", server.URL, callertest.Keys(t, "review-control"))
	return h
}

// policy has recipients judged by it.
func policy(p authoring.Policy) func(*authoring.Config) {
	return func(c *authoring.Config) { c.Policy = p }
}

func (h *house) remote(service, url string, keys *caller.Keys) *remote.Client {
	c := remote.New(
		remote.Options{
			Service:   service,
			Instancer: sd.FixedInstancer{strings.TrimPrefix(url, "http://")},
			Keys:      keys,
			Logger:    slog.New(slog.DiscardHandler),
			Patience:  hubtest.Patience,
		},
	)
	h.t.Cleanup(c.Close)
	return c
}

// agent is a context with the credential of an agent.
func agent(ctx context.Context) context.Context {
	return caller.With(
		ctx,
		caller.Caller{
			Kind:           caller.Key,
			Service:        "crm",
			ExternalUserID: "u1",
			CredentialID:   "ak_1",
			Scopes:         []string{"author", "query"},
			RequestID:      "req_1",
		},
	)
}

type answer struct {
	data     string
	count    int
	replayed bool
}

// send calls a tool as an agent. It is patient: what is tested is not the machine's load.
func (h *house) send(ctx context.Context, name, key, input string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*hubtest.Patience)
	defer cancel()
	response, err := h.client.Do(ctx, remote.Request{Path: rpc.ToolPath(name), Body: []byte(input), IdempotencyKey: key})
	if err != nil {
		return answer{}, err
	}
	defer response.Data.Close()
	b, err := io.ReadAll(response.Data)
	return answer{string(b), response.Count, response.Replayed}, err
}

var keys struct {
	sync.Mutex
	n int
}

func newKey() string {
	keys.Lock()
	defer keys.Unlock()
	keys.n++
	return fmt.Sprintf("key-%d", keys.n)
}

// ok calls a tool with a fresh key and reads its answer into Out, which has to name every member.
func ok[Out any](h *house, name string, input any) Out {
	h.t.Helper()
	a, err := h.send(agent(h.t.Context()), name, newKey(), text(input))
	if err != nil {
		h.t.Fatalf("%s %.300s: %v", name, text(input), err)
	}
	var out Out
	d := json.NewDecoder(strings.NewReader(a.data))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		h.t.Fatalf("%s: %v in %s", name, err, a.data)
	}
	return out
}

// refused calls a tool that has to answer the code.
func (h *house) refused(name string, input any, code fault.Code) *fault.Error {
	h.t.Helper()
	a, err := h.send(agent(h.t.Context()), name, newKey(), text(input))
	if err == nil {
		h.t.Fatalf("%s %.300s answers %s, want %s", name, text(input), a.data, code)
	}
	f := fault.From(err)
	if f.Code != code {
		h.t.Fatalf("%s %.300s: %v, want %s", name, text(input), err, code)
	}
	return f
}

type details struct {
	Violations []schema.Violation        `json:"violations"`
	Targets    []authoring.RefusedTarget `json:"targets"`
	From, To   string
	Code       string
}

func read(t testing.TB, f *fault.Error) (d details) {
	t.Helper()
	if raw, there := f.Details.(json.RawMessage); there {
		if err := json.Unmarshal(raw, &d); err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
	}
	return d
}

// operate calls an internal operation as review-control, for a person where that is shown.
func operate[Out any](h *house, path string, in any) (Out, error) {
	ctx, cancel := context.WithTimeout(
		callertest.Called(h.t, "review-control", caller.Caller{Kind: caller.User, HubUser: "ada"}),
		5*hubtest.Patience,
	)
	defer cancel()
	if path == authoring.DraftTransitionPath {
		return remote.Operation[any, Out]{Path: path, Most: 32 << 20, ForCaller: true}.Call(ctx, h.review, in)
	}
	return remote.Operation[any, Out]{Path: path, Most: 32 << 20}.Call(ctx, h.review, in)
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (h *house) count(sql string, args ...any) (n int) {
	h.t.Helper()
	if err := h.super.QueryRow(h.t.Context(), sql, args...).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

func text(v any) string {
	if s, isText := v.(string); isText {
		return s
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

type object = map[string]any

func segment(targets ...any) object {
	if targets == nil {
		targets = []any{}
	}
	return object{"name": "quiet brands", "kind": "partner", "targets": targets}
}

func member(id any, snapshot string) object {
	return object{"externalId": id, "snapshot": json.RawMessage(snapshot)}
}

type created struct {
	SegmentID      string `json:"segment_id"`
	ID, Name, Kind string
	TargetCount    int
	CreatedAt      string
	SnapshotsTaken int `json:"snapshots_taken"`
	Warnings       []tool.Warning
}

// segmentOf stores a segment and returns its id.
func (h *house) segmentOf(targets ...any) string {
	h.t.Helper()
	return ok[created](h, "create_segment", segment(targets...)).SegmentID
}

func draft(segment string, targets ...any) object {
	return object{"segmentId": segment, "name": "win back", "subjectTemplate": "Hello", "bodyTemplate": "Dear reader", "targets": targets}
}

func target(n int, members ...object) object {
	t := object{"externalId": n, "toEmail": fmt.Sprintf("c%d@partner.example", n), "toName": fmt.Sprintf("Contact %d", n)}
	for _, m := range members {
		for name, value := range m {
			if value == nil {
				delete(t, name)
			} else {
				t[name] = value
			}
		}
	}
	return t
}

type saved struct {
	DraftID     string `json:"draft_id"`
	ID, Status  string
	SegmentID   string
	TargetCount int
	CreatedAt   string
	Removed     []any
	Preview     preview.Mail
	Warnings    []tool.Warning
}

// draftOf stores a draft with so many targets and returns its id.
func (h *house) draftOf(segment string, n int) string {
	h.t.Helper()
	targets := make([]any, n)
	for i := range targets {
		targets[i] = target(i)
	}
	return ok[saved](h, "save_message_draft", draft(segment, targets...)).DraftID
}
