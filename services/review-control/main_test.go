package reviewcontrol_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	"sync/atomic"
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
	pgstore "hub.internal/pkg/postgres"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/rpc"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/service"
	reviewcontrol "hub.internal/services/review-control"
	drafts "hub.internal/services/review-control/authoring"
	"hub.internal/services/review-control/jobs"
	"hub.internal/services/review-control/mailer"
	"hub.internal/services/review-control/postgres"
	"hub.internal/services/review-control/queue"
	"hub.internal/services/review-control/suppression"
)

func TestMain(m *testing.M) { hubtest.Main(m) }

// house is the service on a store of its own, beside an authoring service that the test
// speaks for and an SMTP server that it plays.
type house struct {
	t          testing.TB
	db         hubtest.WriteStoreDB
	store      *postgres.Store
	pool       *pgstore.Pool
	clock      *hubtest.Clock
	keys       *caller.Keys
	super      *pgxpool.Pool
	suppressed *suppression.List
	service    *reviewcontrol.Service
	queue      *queue.Queue
	authoring  *authoring
	sender     *sender
	client     *remote.Client
	url        string
}

func newHouse(t testing.TB, change ...func(*reviewcontrol.Config)) *house {
	t.Helper()
	db := hubtest.MigratedStore(t, "review-control", postgres.Migrate)
	h := &house{t: t, db: db, clock: hubtest.NewClock(time.Time{}), sender: &sender{say: map[string][]answer{}}}
	var err error
	h.keys = callertest.Keys(t, "review-control", caller.Gateway, "authoring")
	h.pool = hubtest.Pool(t, db.URL("review-control"))
	h.store = postgres.New(h.pool)
	if h.super, err = pgxpool.New(t.Context(), db.SuperuserURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.super.Close)
	h.authoring = newAuthoring(t, h.clock)
	h.suppressed = suppression.New(h.store, h.clock.Now)
	h.service = h.another(change...)
	h.queue = queue.New(h.service, h.store)
	mux := http.NewServeMux()
	quiet := slog.New(slog.DiscardHandler)
	log := audit.NewLog(h.pool, quiet)
	t.Cleanup(func() { _ = log.Close(context.Background()) })
	service.Tools(rpc.Server{Mux: mux, Keys: h.keys, Logger: quiet}, log, queue.Tools(h.queue)...)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	h.url = server.URL
	h.client = h.remote("review-control", server.URL, callertest.Keys(t, caller.Gateway))
	return h
}

// another is a replica of the service.
func (h *house) another(change ...func(*reviewcontrol.Config)) *reviewcontrol.Service {
	config := reviewcontrol.Config{Store: h.store, Suppressions: h.suppressed,
		Drafts: drafts.New(h.remote("authoring", h.authoring.url, h.keys)), Sender: h.sender,
		PublicURL: "https://hub.example", From: mailer.Address{Name: "Hub", Email: "hub@hub.example"}, Now: h.clock.Now}
	for _, f := range change {
		f(&config)
	}
	return reviewcontrol.New(config)
}

func (h *house) remote(service, url string, keys *caller.Keys) *remote.Client {
	c := remote.New(remote.Options{Service: service, Instancer: sd.FixedInstancer{strings.TrimPrefix(url, "http://")}, Keys: keys,
		Logger: slog.New(slog.DiscardHandler), Patience: hubtest.Patience})
	h.t.Cleanup(c.Close)
	return c
}

func (h *house) exec(sql string, args ...any) {
	h.t.Helper()
	if _, err := h.super.Exec(context.Background(), sql, args...); err != nil {
		h.t.Fatal(err)
	}
}

// limit bounds the connections that services may have; 0 takes the store away.
func (h *house) limit(connections int) {
	h.t.Helper()
	h.exec(fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT %d", one[string](h, `SELECT quote_ident(current_database())`), connections))
	if connections == 0 {
		h.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'hub_review_control' AND datname = current_database()`)
	}
}

// one reads a single value.
func one[T any](h *house, sql string, args ...any) (v T) {
	h.t.Helper()
	if err := h.super.QueryRow(h.t.Context(), sql, args...).Scan(&v); err != nil {
		h.t.Fatal(err)
	}
	return v
}

func (h *house) jobs(kind string) int {
	h.t.Helper()
	return one[int](h, `SELECT count(*) FROM review_control.river_job WHERE kind = $1 AND finalized_at IS NULL`, kind)
}

var serial atomic.Int64

func newKey() string { return fmt.Sprintf("key-%d", serial.Add(1)) }

// agent is a context with the credential of an agent.
func agent(ctx context.Context) context.Context {
	return caller.With(ctx, caller.Caller{Kind: caller.Key, Service: "crm", ExternalUserID: "u1", CredentialID: "ak_1",
		Scopes: []string{"control"}, RequestID: "req_1"})
}

var (
	ada = reviewcontrol.Reviewer{ID: "usr_ada", Email: "ada@hub.example", Name: "Ada"}
	ben = reviewcontrol.Reviewer{ID: "usr_ben", Email: "ben@hub.example", Name: "Ben"}
)

// signedIn is a context with the console session of a reviewer.
func signedIn(ctx context.Context, r reviewcontrol.Reviewer) context.Context {
	return caller.With(ctx, caller.Caller{Kind: caller.User, Service: "console", ExternalUserID: r.ID, CredentialID: "ses_1",
		HubUser: r.ID, Email: r.Email, Name: r.Name, Roles: []string{"reviewer", "admin"}, RequestID: "req_2"})
}

type reply struct {
	data     string
	count    int
	replayed bool
}

// send calls queue_for_review as an agent.
func (h *house) send(ctx context.Context, key, input string) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*hubtest.Patience)
	defer cancel()
	response, err := h.client.Do(ctx, remote.Request{Path: rpc.ToolPath("queue_for_review"), Body: []byte(input), IdempotencyKey: key})
	if err != nil {
		return reply{}, err
	}
	defer response.Data.Close()
	b, err := io.ReadAll(response.Data)
	return reply{string(b), response.Count, response.Replayed}, err
}

func queueing(id reviewcontrol.ID) string { return fmt.Sprintf(`{"draftId":"%s"}`, id) }

// queued makes a draft with so many targets that is in review.
func (h *house) queued(n int) reviewcontrol.ID {
	h.t.Helper()
	id := h.authoring.draft(n)
	if _, err := h.send(agent(h.t.Context()), newKey(), queueing(id)); err != nil {
		h.t.Fatal(err)
	}
	return id
}

// shown is a target as a page shows it now.
func (h *house) shown(id reviewcontrol.ID, index int) reviewcontrol.Shown {
	h.t.Helper()
	v, err := h.service.Target(h.t.Context(), id, index)
	if err != nil {
		h.t.Fatal(err)
	}
	return reviewcontrol.Shown{Index: index, Hash: v.Rendering.Hash(), Revision: v.Decision.Revision}
}

func (h *house) decide(id reviewcontrol.ID, index int, choice reviewcontrol.Choice) reviewcontrol.Review {
	h.t.Helper()
	r, err := h.service.Decide(signedIn(h.t.Context(), ada), ada, id, h.shown(id, index), reviewcontrol.Judgement{Choice: choice})
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// approved makes a draft whose targets are all approved and wait for their delivery.
func (h *house) approved(n int) reviewcontrol.ID {
	h.t.Helper()
	id := h.queued(n)
	for i := range n {
		h.decide(id, i, reviewcontrol.Approve)
	}
	if _, err := h.service.Finish(h.t.Context(), id); err != nil {
		h.t.Fatal(err)
	}
	return id
}

func (h *house) review(id reviewcontrol.ID) reviewcontrol.Review {
	h.t.Helper()
	r, err := h.store.Review(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

func (h *house) target(id reviewcontrol.ID, index int) reviewcontrol.Target {
	h.t.Helper()
	x, err := h.store.Target(h.t.Context(), id, index)
	if err != nil {
		h.t.Fatal(err)
	}
	return x
}

func (h *house) deliver(id reviewcontrol.ID, index int) time.Duration {
	h.t.Helper()
	again, err := h.service.Deliver(h.t.Context(), id, index)
	if err != nil {
		h.t.Fatal(err)
	}
	return again
}

// instance is the name under which jobs run.
const instance = "test"

// start runs jobs until stop is called, which returns how long they took to end.
func (h *house) start(s *reviewcontrol.Service) (stop func() time.Duration) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		runner := jobs.Runner(s, h.queue, h.suppressed, h.store, 4)
		runner.Pool, runner.Service, runner.Schema, runner.Instance, runner.Logger = h.pool, "review-control", "review_control", instance,
			slog.New(slog.DiscardHandler)
		ended <- runner.Run(ctx)
	}()
	return func() time.Duration {
		h.t.Helper()
		start := time.Now()
		cancel()
		if err := <-ended; err != nil {
			h.t.Error(err)
		}
		return time.Since(start)
	}
}

// run works off jobs until the function answers true.
func (h *house) run(s *reviewcontrol.Service, what string, done func() bool) {
	h.t.Helper()
	stop := h.start(s)
	defer stop()
	hubtest.Eventually(h.t, what, done)
}

func code(err error) fault.Code {
	if err == nil {
		return ""
	}
	return fault.From(err).Code
}

func wants(t testing.TB, err error, want fault.Code) {
	t.Helper()
	if code(err) != want {
		t.Fatalf("%v, want %q", err, want)
	}
}

// details reads the details of a fault that has come over the wire, or not.
func details(t testing.TB, err error) map[string]any {
	t.Helper()
	b, marshalErr := json.Marshal(fault.From(err).Details)
	if marshalErr != nil {
		t.Fatal(marshalErr)
	}
	var d map[string]any
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return d
}

// authoring is the neighbour as its DESIGN.md has it: a compare-and-set for the status, once
// for an operation, and counts that only grow.
type authoring struct {
	url   string
	clock *hubtest.Clock

	mu         sync.Mutex
	drafts     map[string]*draftRow
	operations map[string]transition
	// movers are who was shown to have asked for each transition that was carried out, in order.
	movers []caller.Caller
	next   int64
	down   error
	// old is a release that neither searches nor counts.
	old bool
	// before runs ahead of each transition, unlocked.
	before func(transition)
	// asked runs ahead of each answer about a draft ("get"), whom it is for ("recipients") or their mails ("mails"), unlocked.
	asked func(what string)
}

type draftSummary struct {
	ID              string         `json:"id"`
	Name            string         `json:"name"`
	Status          string         `json:"status"`
	SegmentID       string         `json:"segment_id"`
	SegmentName     string         `json:"segment_name"`
	SegmentKind     string         `json:"segment_kind"`
	TargetCount     int            `json:"target_count"`
	Decisions       map[string]int `json:"decisions"`
	Delivery        map[string]int `json:"delivery"`
	ProgressVersion int64          `json:"progress_version"`
	CreatedBy       *string        `json:"created_by"`
	Origin          map[string]any `json:"origin"`
	CreatedAt       time.Time      `json:"created_at"`
	QueuedAt        *time.Time     `json:"queued_at"`
}

type draftRow struct {
	draftSummary
	SubjectTemplate string  `json:"subject_template"`
	BodyTemplate    string  `json:"body_template"`
	SenderName      *string `json:"sender_name"`
	SenderEmail     *string `json:"sender_email"`

	targets    []targetRow
	rejections map[string]int
	rejected   []rejectedRow
}

// rejectedRow is a rejected target that authoring has heard of.
type rejectedRow struct {
	Index      int       `json:"index"`
	ExternalID int64     `json:"external_id"`
	ToEmail    string    `json:"to_email"`
	Subject    string    `json:"subject"`
	Reason     string    `json:"reason"`
	Note       string    `json:"note"`
	DecidedAt  time.Time `json:"decided_at"`
}

type recipientRow struct {
	Index      int    `json:"index"`
	ExternalID int64  `json:"external_id"`
	ToEmail    string `json:"to_email"`
	ToName     string `json:"to_name"`
	Repeats    string `json:"repeats,omitempty"`
}

type targetRow struct {
	recipientRow
	Subject     string          `json:"subject"`
	Body        string          `json:"body"`
	HTML        bool            `json:"html"`
	Context     json.RawMessage `json:"context"`
	Snapshot    json.RawMessage `json:"snapshot"`
	Doubts      []string        `json:"doubts,omitempty"`
	ContentHash string          `json:"content_hash"`

	SubjectTemplate *string `json:"subject_template,omitempty"`
	BodyTemplate    *string `json:"body_template,omitempty"`
}

type transition struct {
	DraftID     string     `json:"draft_id"`
	From        []string   `json:"from"`
	To          string     `json:"to"`
	QueuedAt    *time.Time `json:"queued_at"`
	OperationID string     `json:"operation_id"`
}

func newAuthoring(t testing.TB, clock *hubtest.Clock) *authoring {
	a := &authoring{clock: clock, drafts: map[string]*draftRow{}, operations: map[string]transition{}}
	review := caller.Neighbour("review-control")
	forAnybody := caller.Rule{"review-control": {caller.Service, caller.Key, caller.App, caller.User}}
	a.url = contract.Serve(t, "authoring",
		contract.Fake(t, "authoring", rpc.Declaration{Path: "/internal/drafts/get", Takes: review}, a.get),
		contract.Fake(t, "authoring", rpc.Declaration{Path: "/internal/drafts/list", Takes: review}, a.list),
		contract.Fake(t, "authoring", rpc.Declaration{Path: "/internal/drafts/targets", Takes: review}, a.mails),
		contract.Fake(t, "authoring", rpc.Declaration{Path: "/internal/drafts/recipients", Takes: review}, a.recipients),
		contract.Fake(t, "authoring", rpc.Declaration{Path: "/internal/drafts/transition", Takes: forAnybody}, a.transit),
		contract.Fake(t, "authoring", rpc.Declaration{Path: "/internal/drafts/progress", Takes: review}, a.progress))
	return a
}

// draft makes a draft with so many targets.
func (a *authoring) draft(n int, change ...func(*draftRow)) reviewcontrol.ID {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next++
	d := &draftRow{draftSummary: draftSummary{ID: fmt.Sprint(a.next), Name: "win back", Status: "draft", SegmentID: "1",
		SegmentName: "quiet", SegmentKind: "partner", TargetCount: n,
		Decisions: map[string]int{"pending": n, "approved": 0, "rejected": 0},
		Delivery:  map[string]int{"sent": 0, "failed": 0, "suppressed": 0, "unknown": 0},
		CreatedBy: new("campaign-agent"), Origin: map[string]any{"service": "crm", "external_user_id": "u1", "credential_id": "ak_1",
			"hub_user": ""}, CreatedAt: a.clock.Now()},
		SubjectTemplate: "Hello", BodyTemplate: "Dear {{toName}}"}
	for i := range n {
		to := recipientRow{Index: i, ExternalID: int64(500 + i), ToEmail: fmt.Sprintf("C%d-%d@partner.example", a.next, i),
			ToName: fmt.Sprintf("Contact %d", i)}
		d.targets = append(d.targets, targetRow{recipientRow: to, Subject: "Hello", Body: fmt.Sprintf("Dear Contact %d", i),
			Snapshot: json.RawMessage(`{"partner_id":1}`)})
	}
	for _, f := range change {
		f(d)
	}
	for i := range d.targets {
		x := &d.targets[i]
		sum := sha256.Sum256([]byte(x.Subject + "\x00" + x.Body + "\x00" + x.ToEmail))
		x.ContentHash = hex.EncodeToString(sum[:])
	}
	a.drafts[d.ID] = d
	return reviewcontrol.ID(a.next)
}

// count has the next draft be the one behind last.
func (a *authoring) count(last int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = last
}

// say makes every operation fail.
func (a *authoring) say(down error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = down
}

// hook has f run ahead of each transition.
func (a *authoring) hook(f func(transition)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.before = f
}

// change does something to a draft behind everybody's back.
func (a *authoring) change(id reviewcontrol.ID, f func(*draftRow)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(a.drafts[id.String()])
}

// row is a copy of a draft.
func (a *authoring) row(id reviewcontrol.ID) draftRow {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := *a.drafts[id.String()]
	d.Decisions, d.Delivery = maps.Clone(d.Decisions), maps.Clone(d.Delivery)
	return d
}

func (a *authoring) find(id string) (*draftRow, error) {
	if a.down != nil {
		return nil, a.down
	}
	if d := a.drafts[id]; d != nil {
		return d, nil
	}
	return nil, fault.New(fault.NotFound, "There is no draft %q.", id)
}

type draftAsked struct {
	DraftID string `json:"draft_id"`
	After   *int   `json:"after"`
	Limit   int    `json:"limit"`
	IDs     []int  `json:"ids"`
}

// listen lets asked, if there is one, run.
func (a *authoring) listen(what string) {
	a.mu.Lock()
	hook := a.asked
	a.mu.Unlock()
	if hook != nil {
		hook(what)
	}
}

func (a *authoring) get(_ context.Context, in struct {
	DraftID string `json:"draft_id"`
}) (draftRow, error) {
	a.listen("get")
	a.mu.Lock()
	defer a.mu.Unlock()
	d, err := a.find(in.DraftID)
	if err != nil {
		return draftRow{}, err
	}
	return *d, nil
}

type draftPage struct {
	Drafts       []draftSummary `json:"drafts"`
	NextAfterID  *string        `json:"next_after_id"`
	Counts       map[string]int `json:"counts,omitzero"`
	CountsOthers map[string]int `json:"counts_others,omitzero"`
}

type draftsAsked struct {
	Status  []string `json:"status"`
	AfterID string   `json:"after_id"`
	Limit   int      `json:"limit"`
	Search  string   `json:"search"`
	Order   string   `json:"order"`
	Makers  []struct {
		CreatedBy      string `json:"created_by"`
		HubUser        string `json:"hub_user"`
		ExternalUserID string `json:"external_user_id"`
	} `json:"makers"`
	Others bool `json:"others"`
	Ahead  []struct {
		DraftID string `json:"draft_id"`
		Status  string `json:"status"`
	} `json:"ahead"`
	Count bool `json:"count"`
}

// madeBySome tells whether one of the makers that are asked about made the draft.
func (in draftsAsked) madeBySome(d *draftRow) bool {
	for _, m := range in.Makers {
		if (d.CreatedBy == nil && m.CreatedBy == "" || d.CreatedBy != nil && m.CreatedBy == *d.CreatedBy) &&
			m.HubUser == d.Origin["hub_user"] && m.ExternalUserID == d.Origin["external_user_id"] {
			return true
		}
	}
	return false
}

func (a *authoring) list(_ context.Context, in draftsAsked) (page draftPage, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.old { // a release that knows less of what is asked
		in = draftsAsked{Status: in.Status, AfterID: in.AfterID, Limit: in.Limit}
	}
	after, _ := schema.ParseID(in.AfterID)
	var found []*draftRow
	page.Drafts, page.Counts, page.CountsOthers = []draftSummary{}, map[string]int{}, map[string]int{}
	for id := reviewcontrol.ID(a.next); id > 0; id-- {
		d := *a.drafts[id.String()]
		for _, x := range in.Ahead {
			if x.DraftID == d.ID {
				d.Status = x.Status
			}
		}
		hit := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(in.Search)) }
		if !hit(d.Name) && !hit(d.SegmentName) && d.ID != in.Search {
			continue
		}
		page.Counts[d.Status]++
		if !in.madeBySome(&d) {
			page.CountsOthers[d.Status]++
		}
		if len(in.Status) > 0 && !slices.Contains(in.Status, d.Status) || in.Others && in.madeBySome(&d) || in.Order == "queued" &&
			d.QueuedAt == nil {
			continue
		}
		d.Status = a.drafts[d.ID].Status // what is stored
		found = append(found, &d)
	}
	if in.Order == "queued" {
		slices.Reverse(found)
		slices.SortStableFunc(found, func(x, y *draftRow) int { return x.QueuedAt.Compare(*y.QueuedAt) })
	}
	begin := 0
	if after != 0 {
		begin = 1 + slices.IndexFunc(found, func(d *draftRow) bool { return d.ID == in.AfterID })
		if begin == 0 && in.Order != "queued" {
			for begin < len(found) && func() bool { id, _ := schema.ParseID(found[begin].ID); return id >= after }() {
				begin++
			}
		}
	}
	for _, d := range found[begin:] {
		if len(page.Drafts) == in.Limit {
			page.NextAfterID = new(page.Drafts[in.Limit-1].ID)
			break
		}
		page.Drafts = append(page.Drafts, d.draftSummary)
	}
	if !in.Count {
		page.Counts, page.CountsOthers = nil, nil
	}
	return page, a.down
}

type targetPage struct {
	Targets   []targetRow `json:"targets"`
	NextAfter *int        `json:"next_after"`
}

func (a *authoring) mails(ctx context.Context, in draftAsked) (targetPage, error) {
	a.listen("mails")
	return a.page(ctx, in)
}

func (a *authoring) page(_ context.Context, in draftAsked) (page targetPage, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d, err := a.find(in.DraftID)
	if err != nil {
		return page, err
	}
	page.Targets = []targetRow{}
	limit, after := in.Limit, -1
	if limit == 0 {
		limit = 100
	}
	if in.After != nil {
		after = *in.After
	}
	if len(in.IDs) > 0 {
		limit = 3 // a page may end by its size, and does here
	}
	for _, x := range d.targets {
		if x.Index <= after || len(in.IDs) > 0 && !slices.Contains(in.IDs, x.Index) {
			continue
		}
		if len(page.Targets) == limit {
			page.NextAfter = new(page.Targets[limit-1].Index)
			break
		}
		page.Targets = append(page.Targets, x)
	}
	return page, nil
}

// recipients are a page of targets without their mails.
func (a *authoring) recipients(ctx context.Context, in struct {
	DraftID string `json:"draft_id"`
	After   *int   `json:"after"`
	Limit   int    `json:"limit"`
}) (map[string]any, error) {
	a.listen("recipients")
	page, err := a.page(ctx, draftAsked{DraftID: in.DraftID, After: in.After, Limit: in.Limit})
	list := []recipientRow{}
	for _, x := range page.Targets {
		list = append(list, x.recipientRow)
	}
	return map[string]any{"recipients": list, "next_after": page.NextAfter}, err
}

var allowed = map[string][]string{"draft": {"in_review", "cancelled"}, "in_review": {"approved", "rejected", "cancelled"},
	"approved": {"sent", "cancelled", "in_review"}}

func (a *authoring) transit(ctx context.Context, in transition) (map[string]any, error) {
	a.mu.Lock()
	hook := a.before
	a.mu.Unlock()
	if hook != nil {
		hook(in)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	d, err := a.find(in.DraftID)
	if err != nil {
		return nil, err
	}
	if c := caller.From(ctx); (c.Kind == caller.Key || c.Kind == caller.App) && in.To != "in_review" {
		return nil, fault.New(fault.Scope, "An agent cannot make a draft %s.", in.To)
	}
	if earlier, again := a.operations[in.OperationID]; again {
		if earlier.DraftID != in.DraftID || earlier.To != in.To || !slices.Contains(in.From, earlier.From[0]) {
			return nil, fault.New(fault.Idempotency, "The operation_id was used before for another transition.")
		}
		return moved(earlier, a.clock.Now(), true), nil
	}
	if !slices.Contains(in.From, d.Status) || !slices.Contains(allowed[d.Status], in.To) {
		return nil, fault.New(fault.Conflict, "The draft is %s, so it cannot become %s.", d.Status,
			in.To).With(map[string]string{"from": d.Status, "to": in.To})
	}
	in.From = []string{d.Status}
	a.movers = append(a.movers, caller.From(ctx))
	a.operations[in.OperationID] = in
	d.Status = in.To
	if in.From[0] == "draft" && in.To == "in_review" {
		d.QueuedAt = in.QueuedAt
	}
	return moved(in, a.clock.Now(), false), nil
}

func moved(x transition, at time.Time, replayed bool) map[string]any {
	return map[string]any{"draft_id": x.DraftID, "from": x.From[0], "to": x.To, "queued_at": x.QueuedAt, "at": at, "replayed": replayed}
}

func (a *authoring) progress(_ context.Context, in struct {
	DraftID    string         `json:"draft_id"`
	Version    int64          `json:"version"`
	Decisions  map[string]int `json:"decisions"`
	Delivery   map[string]int `json:"delivery"`
	Rejections map[string]int `json:"rejections"`
	Rejected   []rejectedRow  `json:"rejected"`
}) (map[string]any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d, err := a.find(in.DraftID)
	if err != nil {
		return nil, err
	}
	if in.Version < 1 || in.Decisions["pending"]+in.Decisions["approved"]+in.Decisions["rejected"] != d.TargetCount ||
		in.Delivery["sent"]+in.Delivery["failed"]+in.Delivery["suppressed"]+in.Delivery["unknown"] > in.Decisions["approved"] {
		return nil, fault.New(fault.Validation, "The counts do not add up: %v", in)
	}
	reasons := 0
	for _, n := range in.Rejections {
		reasons += n
	}
	if reasons > in.Decisions["rejected"] || len(in.Rejected) > in.Decisions["rejected"] || len(in.Rejected) > 50 {
		return nil, fault.New(fault.Validation, "The reasons do not add up: %v", in)
	}
	if in.Version > d.ProgressVersion {
		d.ProgressVersion, d.Decisions, d.Delivery, d.rejections = in.Version, in.Decisions, in.Delivery, in.Rejections
		d.rejected = in.Rejected
	}
	return map[string]any{"draft_id": d.ID, "version": d.ProgressVersion, "decisions": d.Decisions, "delivery": d.Delivery,
		"rejections": d.rejections}, nil
}

// answer is how the SMTP server takes a mail.
type answer struct {
	// refuse is answered before the hand-over, say after it.
	refuse, say error
	// while runs during the hand-over.
	while func(context.Context)
}

// sender plays the SMTP server: it answers an address as it was told, in order, and takes
// everything else.
type sender struct {
	mu   sync.Mutex
	say  map[string][]answer
	sent []mailer.Message
	// tries counts calls, whatever came of them.
	tries int
}

func (s *sender) to(email string, answers ...answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say[email] = answers
}

func (s *sender) mails() []mailer.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

func (s *sender) Send(ctx context.Context, m mailer.Message, begin func(context.Context) error) error {
	s.mu.Lock()
	s.tries++
	var a answer
	if list := s.say[m.To.Email]; len(list) > 0 {
		a, s.say[m.To.Email] = list[0], list[1:]
	}
	s.mu.Unlock()
	if a.refuse != nil {
		return a.refuse
	}
	if err := begin(ctx); err != nil {
		return err
	}
	if a.while != nil {
		a.while(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, m)
	return a.say
}
