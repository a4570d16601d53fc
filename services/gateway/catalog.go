package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hub.internal/pkg/caller"
	"hub.internal/pkg/fault"
	"hub.internal/pkg/hop"
	"hub.internal/pkg/process"
	"hub.internal/pkg/remote"
	"hub.internal/pkg/schema"
	"hub.internal/pkg/tool"
	"hub.internal/pkg/web"
)

// Entry is a tool of the catalog, its owner, and its input's validator.
type Entry struct {
	Spec      tool.Spec
	Service   string
	validator *schema.Validator
}

// Validate judges an input; the owner judges it again.
func (e *Entry) Validate(input []byte) *fault.Error { return e.validator.Validate(input) }

// Catalog merges the manifests of the services. It begins with the committed file,
// follows what the services say, and keeps the last good word of each.
type Catalog struct {
	logger *slog.Logger
	mu     sync.Mutex
	// manifests is what each service said last.
	manifests map[string]tool.Manifest
	merged    atomic.Pointer[merged]
}

// merged is one version of the catalog, and what is answered from it.
type merged struct {
	byName  map[string]*Entry
	ordered []*Entry
	console []*consoleRoute
	// openAPI renders the description of the API when it is asked for first.
	openAPI func() (*web.Static, error)
	// listings are catalogs as they have been answered, by the scopes held (string, a byte for each
	// tool): there are as many as combinations of scopes in use.
	listings sync.Map
}

// seal ends the making of a version.
func (m *merged) seal() *merged {
	m.openAPI = sync.OnceValues(func() (*web.Static, error) { return describe(m.ordered) })
	return m
}

// listing is the catalog as a caller sees it, rendered once for all who hold the same scopes.
func (c *Catalog) listing(who caller.Caller) (*document, error) {
	m := c.merged.Load()
	tools, allowed := make([]listed, len(m.ordered)), make([]byte, len(m.ordered))
	for i, e := range m.ordered {
		if tools[i] = e.listed(who); tools[i].Allowed {
			allowed[i] = 1
		}
	}
	if known, ok := m.listings.Load(string(allowed)); ok {
		return known.(*document), nil
	}
	d, err := newDocument("catalog", len(tools), map[string]any{"version": process.Version, "tools": tools})
	if err != nil {
		return nil, err
	}
	known, _ := m.listings.LoadOrStore(string(allowed), d)
	return known.(*document), nil
}

// NewCatalog returns one without tools.
func NewCatalog(logger *slog.Logger) *Catalog {
	c := &Catalog{logger: logger, manifests: map[string]tool.Manifest{}}
	c.merged.Store((&merged{}).seal())
	return c
}

// LoadCatalog reads deploy/catalog.json, so that a gateway starts before any service.
func LoadCatalog(path string, logger *slog.Logger) (*Catalog, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("HUB_CATALOG: %w", err)
	}
	var file tool.Catalog
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, fmt.Errorf("HUB_CATALOG: %s: %w", path, err)
	}
	c := NewCatalog(logger)
	for _, m := range file.Manifests {
		if err := c.Update(m); err != nil {
			return nil, fmt.Errorf("HUB_CATALOG: %s: %w", path, err)
		}
	}
	return c, nil
}

// Update takes a service's manifest. It refuses one that claims another service's
// tool or holds a schema that cannot be enforced, and keeps what it had.
func (c *Catalog) Update(m tool.Manifest) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.manifests[m.Service]; ok && reflect.DeepEqual(known, m) {
		return nil // as nearly always: what is rendered and compiled stays
	}
	next := make(map[string]tool.Manifest, len(c.manifests)+1)
	for name, manifest := range c.manifests {
		next[name] = manifest
	}
	next[m.Service] = m
	all, err := merge(next)
	if err != nil {
		return fmt.Errorf("manifest of %s: %w", m.Service, err)
	}
	c.manifests = next
	c.merged.Store(all)
	return nil
}

func merge(manifests map[string]tool.Manifest) (*merged, error) {
	all := &merged{byName: map[string]*Entry{}}
	for service, m := range manifests {
		for _, spec := range m.Tools {
			if other := all.byName[spec.Name]; other != nil {
				return nil, fmt.Errorf("tool %s is claimed by %s and by %s", spec.Name, other.Service, service)
			}
			validator, err := compile(spec)
			if err != nil {
				return nil, err
			}
			e := &Entry{Spec: spec, Service: service, validator: validator}
			all.byName[spec.Name] = e
			all.ordered = append(all.ordered, e)
		}
	}
	var err error
	if all.console, err = mergeConsole(manifests); err != nil {
		return nil, err
	}
	sort.Slice(all.ordered, func(i, j int) bool {
		a, b := all.ordered[i].Spec, all.ordered[j].Spec
		if a.Position != b.Position {
			return a.Position < b.Position
		}
		return a.Name < b.Name
	})
	return all.seal(), nil
}

func compile(spec tool.Spec) (*schema.Validator, error) {
	var s schema.Schema
	if err := json.Unmarshal(spec.Input, &s); err != nil {
		return nil, fmt.Errorf("tool %s: input schema: %w", spec.Name, err)
	}
	v, err := schema.Compile(&s)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", spec.Name, err)
	}
	return v, nil
}

// Entry returns a tool by name, or nil.
func (c *Catalog) Entry(name string) *Entry { return c.merged.Load().byName[name] }

// Entries lists the tools in the order of the specification's table.
func (c *Catalog) Entries() []*Entry { return c.merged.Load().ordered }

// Owners lists the services that the catalog knows, sorted.
func (c *Catalog) Owners() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := make([]string, 0, len(c.manifests))
	for name := range c.manifests {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// manifestEvery is how often each service is asked for its manifest.
const manifestEvery = 5 * time.Second

// Follow asks a service for its manifest until ctx ends. A service that is down keeps
// its last good one.
func (c *Catalog) Follow(ctx context.Context, client *remote.Client, service string) error {
	tick := time.NewTicker(manifestEvery)
	defer tick.Stop()
	last := ""
	for {
		if err := c.fetch(ctx, client, service); err != nil && err.Error() != last && ctx.Err() == nil {
			last = err.Error()
			c.logger.Warn("manifest not taken", "owner", service, "error", err)
		} else if err == nil {
			last = ""
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (c *Catalog) fetch(ctx context.Context, client *remote.Client, service string) error {
	ctx, cancel := context.WithTimeout(ctx, manifestEvery)
	defer cancel()
	response, err := client.Do(caller.Alone(ctx, caller.Gateway), remote.Request{Method: "GET", Path: hop.ManifestPath, Retry: true})
	if err != nil {
		return err
	}
	defer response.Data.Close()
	var m tool.Manifest
	if err := json.NewDecoder(response.Data).Decode(&m); err != nil {
		return fmt.Errorf("manifest of %s: %w", service, err)
	}
	if m.Service != service {
		return fmt.Errorf("manifest of %s names %q", service, m.Service)
	}
	return c.Update(m)
}

// listed is a tool as the catalog shows it to one credential.
type listed struct {
	Name        string          `json:"name"`
	Category    string          `json:"category"`
	Description string          `json:"description"`
	Write       bool            `json:"write"`
	Scope       string          `json:"scope"`
	Allowed     bool            `json:"allowed"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// detailed is what GET /api/tools/{name}/detail adds.
type detailed struct {
	listed
	OutputSchema json.RawMessage  `json:"output_schema"`
	Errors       []tool.ErrorDoc  `json:"errors"`
	Limits       map[string]int64 `json:"limits"`
	Examples     []tool.Example   `json:"examples"`
}

func (e *Entry) listed(c caller.Caller) listed {
	s := e.Spec
	return listed{s.Name, s.Category, s.Description, s.Write, s.Scope, c.Holds(s.Scope), s.Input}
}

func (e *Entry) detailed(c caller.Caller, key APIKey) detailed {
	limits := map[string]int64{
		"max_body_bytes": e.Spec.MaxBody, "timeout_ms": e.Spec.TimeoutMS,
		"rate_user_per_minute": int64(key.User.PerMinute), "rate_user_burst": int64(key.User.Burst),
		"rate_service_per_minute": int64(key.ServiceWide.PerMinute), "rate_service_burst": int64(key.ServiceWide.Burst),
	}
	for name, n := range e.Spec.Limits {
		limits[name] = n
	}
	return detailed{e.listed(c), e.Spec.Output, errorsOf(e.Spec), limits, e.Spec.Examples}
}

// errorsOf lists the codes that a tool can answer: those of the edge, then its own.
// A tool's own reason replaces the edge's for the same code.
func errorsOf(s tool.Spec) []tool.ErrorDoc {
	edge := []tool.ErrorDoc{
		{Code: fault.Validation, Reason: "The body breaks the input schema; details.violations lists every violation."},
		{Code: fault.AuthMissing, Reason: "No API key was sent."},
		{Code: fault.AuthInvalid, Reason: "The API key is malformed or unknown."},
		{Code: fault.AuthRevoked, Reason: "The API key was revoked or has expired."},
		{Code: fault.Scope, Reason: "The API key lacks the scope " + s.Scope + "."},
		{Code: fault.RateLimit, Reason: "Too many calls; try again after details.retryAfter seconds."},
		{Code: fault.DB, Reason: "A service or a database is not available right now; try again."},
		{Code: fault.Internal, Reason: "A defect of Hub; quote the request_id."},
	}
	if s.Write {
		edge = append(edge,
			tool.ErrorDoc{Code: fault.Idempotency, Reason: "The Idempotency-Key was used before with another input."},
			tool.ErrorDoc{Code: fault.Conflict, Reason: "A call with the same Idempotency-Key still runs (details.code REQUEST_IN_PROGRESS)."})
	}
	own := map[fault.Code]bool{}
	for _, e := range s.Errors {
		own[e.Code] = true
	}
	out := slices.DeleteFunc(edge, func(e tool.ErrorDoc) bool { return own[e.Code] })
	return append(out, s.Errors...)
}

// unknown is the refusal of a tool that does not exist; it names those that sound alike.
func (c *Catalog) unknown(name string) error {
	var alike []string
	for _, e := range c.Entries() {
		for _, word := range strings.Split(strings.ToLower(name), "_") {
			if len(word) > 3 && strings.Contains(e.Spec.Name, word) {
				alike = append(alike, e.Spec.Name)
				break
			}
		}
	}
	if len(alike) > 0 {
		return fault.New(fault.NotFound, "There is no tool %q. Did you mean %s? GET /api/tools lists all.", printable(name), strings.Join(alike, ", "))
	}
	return fault.New(fault.NotFound, "There is no tool %q. GET /api/tools lists the tools.", printable(name))
}
