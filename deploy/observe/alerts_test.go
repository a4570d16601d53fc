package observe_test

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// scene is what an alert is shown: it fires in one and in each of too, and stays quiet in each of the others.
type scene struct {
	step       time.Duration // between samples; 0 is a minute
	fires      []string
	too, quiet map[string][]string
}

// Notation for what the alerts read.
const (
	edgeOK    = `hub_call_duration_seconds_count{name="gateway get_brand",outcome="ok",service="gateway"}`
	edgeDB    = `hub_call_duration_seconds_count{name="gateway get_brand",outcome="E_DB",service="gateway"}`
	edgeAuth  = `hub_call_duration_seconds_count{name="gateway",outcome="E_DB",service="gateway"}`
	edgeKey   = `hub_call_duration_seconds_count{name="gateway",outcome="E_AUTH_INVALID",service="gateway"}`
	edgePage  = `hub_call_duration_seconds_count{name="gateway",outcome="ok",service="gateway"}`
	edgeNo    = `hub_call_duration_seconds_count{name="gateway get_brand",outcome="E_NOT_FOUND",service="gateway"}`
	edgeShed  = `hub_call_duration_seconds_count{name="gateway get_brand",outcome="shed",service="gateway"}`
	edgeSQL   = `hub_call_duration_seconds_count{name="gateway execute_read_sql",outcome="E_DB_TIMEOUT",service="gateway"}`
	edgeQuick = `hub_call_duration_seconds_bucket{name="gateway get_brand",outcome="ok",service="gateway",le="0.5"}`
)

// dependency is a series of calls to one.
func dependency(service, name, operation, outcome string) string {
	return `hub_dependency_duration_seconds_count{service="` + service + `",dependency="` + name + `",operation="` + operation +
		`",outcome="` + outcome + `"}`
}

func within(name, operation, le string) string {
	return `hub_dependency_duration_seconds_bucket{service="query",dependency="` + name + `",operation="` + operation +
		`",outcome="ok",le="` + le + `"}`
}

// others are all services but query, in order.
func others(steps int) (list []string) {
	for _, service := range targetLabels["service"] {
		if service != "query" {
			list = append(list, gauge(`up{job="hub",service="`+service+`",instance="a"}`, 1, steps))
		}
	}
	return list
}

// share is two counters, of which the first is n of a hundred, and grow for steps.
func share(first, second string, n float64, steps int) []string {
	return []string{count(first, 60*n/100, steps), count(second, 60*(100-n)/100, steps)}
}

func scenes() map[string]scene {
	refused := `hub_bulkhead_refusals_total{service="gateway",bulkhead="query"}`
	sql := `hub_bulkhead_refusals_total{service="query",bulkhead="sql"}`
	audit := func(used float64, steps int) []string {
		return []string{gauge(`hub_bulkhead_used{service="admin",instance="a",bulkhead="audit"}`, used, steps),
			gauge(`hub_bulkhead_limit{service="admin",instance="a",bulkhead="audit"}`, 20000, steps)}
	}
	lag := func(queue string, seconds float64) []string {
		return []string{gauge(`hub_jobs_lag_seconds{service="payments",queue="`+queue+`"}`, seconds, 10)}
	}
	delivered := func(outcome string) string { return `hub_review_deliveries_total{outcome="` + outcome + `"}` }
	waitingAt := func(instance string) string {
		return `hub_review_mails_waiting{service="review-control",for="delivery",instance="` + instance + `"}`
	}
	waiting := waitingAt("a")
	memory := func(resident float64, limit string) []string {
		return []string{
			gauge(`process_resident_memory_bytes{job="hub",instance="a"}`, resident, 20),
			`go_gc_gomemlimit_bytes{job="hub",instance="a"} ` + limit + `x20`,
		}
	}
	replica := func(instance, address string) string {
		return `hub_source_replica_up{service="query",instance="` + instance + `",server_address="` + address + `",server_port="3306"}`
	}
	slow := func(quick float64, steps int) []string {
		return []string{count(edgeQuick, quick, steps), count(edgeOK, 60, steps)}
	}
	return map[string]scene{
		"HubEdgeErrorsFast": {
			fires: share(edgeDB, edgeOK, 2, 65),
			too: map[string][]string{
				"auth cannot be asked":            {count(edgeAuth, 60, 65)},
				"auth cannot be asked for some":   share(edgeAuth, edgeOK, 2, 65),
				"among refused keys and visitors": append(share(edgeDB, edgeOK, 2, 65), count(edgeKey, 6000, 65), count(edgePage, 6000, 65)),
			},
			quiet: map[string][]string{
				"unknown keys":                   share(edgeKey, edgeOK, 90, 65),
				"auth, five in the night":        {edgeAuth + " 0x60 0+1x5", edgeOK + " 0x65"},
				"one in a thousand":              share(edgeDB, edgeOK, 0.1, 65),
				"refusals of what is asked for":  share(edgeNo, edgeOK, 50, 65),
				"what a full service sheds":      share(edgeShed, edgeOK, 90, 65),
				"statements of callers":          share(edgeSQL, edgeOK, 50, 65),
				"over for forty minutes":         {edgeDB + " 0+2x25 50x40", count(edgeOK, 60, 65)},
				"five of five in the night":      {edgeDB + " 0x60 0+1x5", edgeOK + " 0x65"},
				"nobody calls, and nobody fails": {edgeDB + " 0x65", edgeOK + " 0x65"},
			},
		},
		"HubEdgeErrorsSlow": {
			step:  10 * time.Minute,
			fires: share(edgeDB, edgeOK, 0.4, 440),
			too: map[string][]string{
				"auth cannot be asked":            share(edgeAuth, edgeOK, 99, 440),
				"among refused keys and visitors": append(share(edgeDB, edgeOK, 0.4, 440), count(edgeKey, 6000, 440), count(edgePage, 6000, 440)),
			},
			quiet: map[string][]string{
				"half of what may be": share(edgeDB, edgeOK, 0.05, 440),
				"long over":           {edgeDB + " 0+20x100 2000x340", count(edgeOK, 600, 440)},
			},
		},
		"HubEdgeSlowFast": {
			fires: slow(48, 65),
			too:   map[string][]string{"among refused keys": append(slow(48, 65), count(edgeKey, 6000, 65))},
			quiet: map[string][]string{"one in a hundred": slow(59.4, 65), "all": slow(60, 65)},
		},
		"HubEdgeSlowSlow": {
			step:  10 * time.Minute,
			fires: slow(57.5, 440),
			quiet: map[string][]string{"one in two hundred": slow(59.7, 440)},
		},

		"HubWatchdog": {fires: others(5)},
		"HubServiceDown": {
			fires: append(
				others(5),
				gauge(`up{job="hub",service="query",instance="a"}`, 0, 5),
				gauge(`up{job="hub",service="query",instance="b"}`, 0, 5),
			),
			quiet: map[string][]string{
				"one is left": append(
					others(5),
					gauge(`up{job="hub",service="query",instance="a"}`, 0, 5),
					gauge(`up{job="hub",service="query",instance="b"}`, 1, 5),
				),
			},
		},
		"HubInstanceDown": {
			fires: []string{gauge(`up{job="hub",service="query",instance="a"}`, 0, 12)},
			quiet: map[string][]string{
				"back after five minutes": {`up{job="hub",service="query",instance="a"} 0x5 1x7`},
				"not ours":                {gauge(`up{job="node"}`, 0, 12)},
			},
		},
		"HubRestarts": {
			fires: []string{`process_start_time_seconds{job="hub",service="query",instance="a"} 1x5 2x5 3x5 4x5`},
			quiet: map[string][]string{"a release": {`process_start_time_seconds{job="hub",service="query",instance="a"} 1x10 2x10`}},
		},
		"HubNeighbourOut": {
			fires: []string{
				gauge(`hub_dependency_instances{service="gateway",dependency="query",state="ok"}`, 0, 5),
				gauge(`hub_dependency_instances{service="gateway",dependency="query",state="out"}`, 2, 5),
			},
			quiet: map[string][]string{
				"another process finds one": {
					gauge(`hub_dependency_instances{service="gateway",dependency="query",state="ok"}`, 0, 5),
					gauge(`hub_dependency_instances{service="admin",dependency="query",state="ok"}`, 1, 5),
				},
			},
		},
		"HubNeighbourErrors": {
			fires: share(dependency("gateway", "auth", "call", "unanswered"), dependency("gateway", "auth", "call", "ok"), 10, 15),
			quiet: map[string][]string{
				"one in a hundred": share(
					dependency("gateway", "auth", "call", "unanswered"),
					dependency("gateway", "auth", "call", "ok"),
					1,
					15,
				),
				"its own refusals": share(
					dependency("gateway", "auth", "call", "E_AUTH_INVALID"),
					dependency("gateway", "auth", "call", "ok"),
					90,
					15,
				),
			},
		},
		"HubWriteStoreErrors": {
			fires: share(dependency("auth", "postgres", "query", "E_DB"), dependency("auth", "postgres", "query", "ok"), 10, 10),
			too: map[string][]string{
				"its password is refused": {count(dependency("auth", "postgres", "connect", "E_DB"), 60, 10)},
			},
			quiet: map[string][]string{
				"duplicates": share(
					dependency("auth", "postgres", "query", "sqlstate_23"),
					dependency("auth", "postgres", "query", "ok"),
					50,
					10,
				),
			},
		},
		"HubPoolWaits": {
			fires: []string{count(`hub_pool_wait_time_seconds_total{service="auth",instance="a",pool="write store"}`, 90, 20)},
			quiet: map[string][]string{
				"now and then": {count(`hub_pool_wait_time_seconds_total{service="auth",instance="a",pool="write store"}`, 3, 20)},
			},
		},
		"HubBulkheadRefuses": {
			fires: []string{count(refused, 30, 20)},
			quiet: map[string][]string{"one": {refused + " 0x10 1x10"}, "statements have an alert of their own": {count(sql, 30, 20)}},
		},
		"HubMemoryNearLimit": {
			fires: memory(0.97e9, "1e9"),
			quiet: map[string][]string{"half": memory(0.5e9, "1e9"), "no limit": memory(0.97e9, "9.22e18")},
		},
		"HubRateLimitLocal": {
			fires: []string{gauge(`hub_ratelimit_local{instance="a"}`, 1, 5)},
			quiet: map[string][]string{"a moment": {`hub_ratelimit_local{instance="a"} 0x3 1 0`}},
		},
		"HubRedisSlow": {
			fires: share(dependency("gateway", "redis", "limit", "late"), dependency("gateway", "redis", "limit", "ok"), 5, 15),
			quiet: map[string][]string{
				"one in a thousand": share(
					dependency("gateway", "redis", "limit", "late"),
					dependency("gateway", "redis", "limit", "ok"),
					0.1,
					15,
				),
			},
		},
		"HubManifestRefused": {
			fires: []string{gauge(`hub_manifests_refused`, 1, 15)},
			quiet: map[string][]string{"during a release": {`hub_manifests_refused 1x5 0x10`}},
		},
		"HubAuditDropped": {
			fires: []string{`hub_audit_dropped_total{service="gateway"} 0x10 40x5`},
			quiet: map[string][]string{
				"none":      {gauge(`hub_audit_dropped_total{service="gateway"}`, 0, 15)},
				"yesterday": {gauge(`hub_audit_dropped_total{service="gateway"}`, 40, 15)},
			},
		},
		"HubAuditBacklog": {fires: audit(15000, 5), quiet: map[string][]string{"a little": audit(2000, 5)}},
		"HubAuditForeign": {
			fires: []string{`hub_audit_foreign{service="admin",instance="a"} 0x5 3x5`},
			quiet: map[string][]string{"none": {gauge(`hub_audit_foreign{service="admin",instance="a"}`, 0, 10)}},
		},
		"HubSamplesStale": {
			fires: []string{gauge(`hub_sample_age_seconds{service="payments",sample="jobs"}`, 240, 5)},
			quiet: map[string][]string{"fresh": {gauge(`hub_sample_age_seconds{service="payments",sample="jobs"}`, 14, 5)}},
		},
		"HubClaimsLeft": {
			fires: []string{gauge(`hub_claims_oldest_seconds{service="payments"}`, 900, 10)},
			quiet: map[string][]string{"taken over soon": {gauge(`hub_claims_oldest_seconds{service="payments"}`, 40, 10)}},
		},
		"HubJobsLag": {
			fires: lag("webhook", 400),
			quiet: map[string][]string{"in time": lag("webhook", 2), "behind a sweep": lag("sweep", 3000)},
		},
		"HubJobsStuck": {
			fires: lag("mail", 2000),
			quiet: map[string][]string{"late": lag("mail", 400), "behind a sweep": lag("sweep", 3000)},
		},
		"HubJobsLeaderless": {
			fires: []string{
				gauge(`hub_jobs_leader{service="admin",instance="a"}`, 0, 10),
				gauge(`hub_jobs_leader{service="admin",instance="b"}`, 0, 10),
			},
			quiet: map[string][]string{"an election": {`hub_jobs_leader{service="admin",instance="a"} 1x3 0 1x6`}},
		},
		"HubJobsDiscarded": {
			fires: []string{`hub_jobs_discarded{service="admin",queue="audit"} 0x60 1x5`},
			quiet: map[string][]string{
				"since yesterday": {gauge(`hub_jobs_discarded{service="admin",queue="audit"}`, 3, 65)},
				"they go":         {`hub_jobs_discarded{service="admin",queue="audit"} 3x60 0x5`},
			},
		},

		"HubSourceErrors": {
			fires: share(dependency("query", "source", "fixed", "E_DB"), dependency("query", "source", "fixed", "ok"), 20, 10),
			quiet: map[string][]string{
				"callers' mistakes": share(
					dependency("query", "source", "caller", "E_VALIDATION"),
					dependency("query", "source", "caller", "ok"),
					60,
					10,
				),
			},
		},
		"HubSourceSlow": {
			fires: []string{count(within("source", "fixed", "1.0"), 50, 35), count(dependency("query", "source", "fixed", "ok"), 60, 35)},
			quiet: map[string][]string{
				"quick": {count(within("source", "fixed", "1.0"), 60, 35), count(dependency("query", "source", "fixed", "ok"), 60, 35)},
			},
		},
		"HubSourceTimeouts": {
			fires: share(dependency("query", "source", "caller", "E_DB_TIMEOUT"), dependency("query", "source", "caller", "ok"), 40, 35),
			quiet: map[string][]string{
				"some": share(
					dependency("query", "source", "caller", "E_DB_TIMEOUT"),
					dependency("query", "source", "caller", "ok"),
					10,
					35,
				),
			},
		},
		"HubSourceRefuses": {fires: []string{count(sql, 30, 20)}, quiet: map[string][]string{"a burst": {sql + " 0x10 3x10"}}},
		"HubSourceStale": {
			fires: []string{gauge(`hub_source_stale{instance="a"}`, 1, 10), gauge(`hub_source_stale{instance="b"}`, 0, 10)},
			quiet: map[string][]string{
				"a moment": {`hub_source_stale{instance="a"} 0x5 1x2 0x3`},
				"none":     {gauge(`hub_source_stale{instance="a"}`, 0, 10)},
			},
		},
		"HubSourceReplicaDown": {
			fires: []string{gauge(replica("a", "db-1"), 0, 15), gauge(replica("b", "db-1"), 0, 15), gauge(replica("a", "db-2"), 1, 15)},
			quiet: map[string][]string{
				"a restart":               {replica("a", "db-1") + " 1x5 0x5 1x5"},
				"another process asks it": {gauge(replica("a", "db-1"), 0, 15), gauge(replica("b", "db-1"), 1, 15)},
			},
		},
		"HubSourceRunaway": {
			fires: []string{gauge(`hub_sql_runaway{instance="a"}`, 1, 3)},
			quiet: map[string][]string{"none": {gauge(`hub_sql_runaway{instance="a"}`, 0, 3)}},
		},
		"HubSourceGuardHole": {
			fires: []string{`hub_sql_guard_hole_total{db_errno="1792"} 0x10 1x3`},
			quiet: map[string][]string{"none": {gauge(`hub_sql_guard_hole_total{db_errno="1792"}`, 0, 13)}},
		},

		"HubDeliveryFailures": {
			fires: []string{count(delivered("failed"), 1, 70), count(delivered("sent"), 9, 70)},
			quiet: map[string][]string{
				"some addresses are wrong": {count(delivered("failed"), 1, 70), count(delivered("sent"), 99, 70)},
				"three of ten":             {delivered("failed") + " 0x50 3x20", delivered("sent") + " 0x50 7x20"},
				"the suppression list":     {count(delivered("suppressed"), 5, 70), count(delivered("sent"), 5, 70)},
			},
		},
		"HubDeliveryUnknown": {
			fires: []string{delivered("unknown") + " 0x10 1x5"},
			quiet: map[string][]string{"all known": {gauge(delivered("unknown"), 0, 15), count(delivered("sent"), 5, 15)}},
		},
		"HubDeliveryStuck": {
			fires: []string{gauge(waiting, 12, 130), gauge(delivered("sent"), 100, 130)},
			quiet: map[string][]string{
				"they leave": {gauge(waiting, 12, 130), count(delivered("sent"), 1, 130)},
				"none waits": {gauge(waiting, 0, 130), gauge(delivered("sent"), 100, 130)},
				"new ones":   {waiting + " 0x100 5x30", gauge(delivered("sent"), 100, 130)},
				"new ones after a rollout": {waiting + " 0x100 _x30", waitingAt("b") + " _x100 5x30",
					gauge(delivered("sent"), 100, 130)},
			},
		},
		"HubMailServerErrors": {
			fires: share(dependency("review-control", "smtp", "send", "later"), dependency("review-control", "smtp", "send", "ok"), 80, 25),
			quiet: map[string][]string{
				"wrong addresses": share(
					dependency("review-control", "smtp", "send", "never"),
					dependency("review-control", "smtp", "send", "ok"),
					80,
					25,
				),
			},
		},
		"HubReviewUnsynced": {
			fires: []string{gauge(`hub_review_unsynced`, 2, 20)},
			quiet: map[string][]string{"for a minute": {`hub_review_unsynced 2 0x19`}},
		},
		"HubReviewWaiting": {
			fires: []string{gauge(`hub_review_lag_seconds`, 200000, 3)},
			quiet: map[string][]string{"since yesterday": {gauge(`hub_review_lag_seconds`, 90000, 3)}},
		},

		"HubWebhooksWaiting": {
			fires: []string{gauge(`hub_payments_webhooks_lag_seconds`, 600, 10)},
			quiet: map[string][]string{"a second": {gauge(`hub_payments_webhooks_lag_seconds`, 1, 10)}},
		},
		"HubWebhooksAbandoned": {
			fires: []string{`hub_payments_webhooks_total{outcome="abandoned"} 0x10 1x5`},
			quiet: map[string][]string{
				"looked into": {
					`hub_payments_webhooks_total{outcome="applied"} 0+5x15`,
					gauge(`hub_payments_webhooks_total{outcome="abandoned"}`, 0, 15),
				},
			},
		},
		"HubProviderErrors": {
			fires: share(dependency("payments", "nicepay", "get", "unknown"), dependency("payments", "nicepay", "get", "ok"), 30, 15),
			quiet: map[string][]string{
				"it declines": share(
					dependency("payments", "nicepay", "cancel", "declined"),
					dependency("payments", "nicepay", "get", "ok"),
					50,
					15,
				),
			},
		},
		"HubOrdersOverdue": {
			fires: []string{gauge(`hub_payments_orders_lag_seconds`, 1200, 10)},
			quiet: map[string][]string{"in time": {gauge(`hub_payments_orders_lag_seconds`, 30, 10)}},
		},
		"HubOrdersAttention": {
			fires: []string{gauge(`hub_payments_orders_attention`, 1, 20)},
			quiet: map[string][]string{"none": {gauge(`hub_payments_orders_attention`, 0, 20)}},
		},
		"HubPaymentsDrift": {
			fires: []string{`hub_payments_drift_total 0x10 1x5`},
			quiet: map[string][]string{"none": {gauge(`hub_payments_drift_total`, 0, 15)}},
		},
		"HubSweepMissing": {
			fires: []string{gauge(`hub_payments_sweep_age_seconds`, 100000, 15)},
			quiet: map[string][]string{
				"last night": {gauge(`hub_payments_sweep_age_seconds`, 50000, 15)},
				"another replica has seen it": {
					gauge(`hub_payments_sweep_age_seconds{instance="a"}`, 100000, 15),
					gauge(`hub_payments_sweep_age_seconds{instance="b"}`, 50, 15),
				},
			},
		},
		"HubNotificationsDead": {
			fires: []string{`hub_payments_notifications_total{outcome="dead"} 0x10 1x5`},
			quiet: map[string][]string{
				"tried again": {
					`hub_payments_notifications_total{outcome="pending"} 0+5x15`,
					gauge(`hub_payments_notifications_total{outcome="dead"}`, 0, 15),
				},
			},
		},
		"HubNotificationsLate": {
			fires: []string{gauge(`hub_payments_notices_lag_seconds`, 600, 10)},
			quiet: map[string][]string{"in time": {gauge(`hub_payments_notices_lag_seconds`, 3, 10)}},
		},
		"HubNotificationsFailing": {
			fires: share(
				dependency("payments", "receiver", "notify", "http_5xx"),
				dependency("payments", "receiver", "notify", "ok"),
				70,
				35,
			),
			quiet: map[string][]string{
				"some": share(
					dependency("payments", "receiver", "notify", "unanswered"),
					dependency("payments", "receiver", "notify", "ok"),
					20,
					35,
				),
			},
		},
	}
}

// TestAlertsFireAndStayQuiet: each alert does both, over series as Prometheus would have stored them.
func TestAlertsFireAndStayQuiet(t *testing.T) {
	e, there := newEvaluator(t), load(t)
	all := scenes()
	if got, want := slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(e.alerts)); !slices.Equal(got, want) {
		t.Errorf("there are scenes for %v, and alerts %v", got, want)
	}
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			if s.step == 0 {
				s.step = time.Minute
			}
			if len(s.quiet) == 0 && name != "HubWatchdog" {
				t.Error("there is no scene in which it stays quiet")
			}
			if firing := e.firing(t, name, newWorld(t, s.step, s.fires...)); len(firing) != 1 {
				t.Errorf("it fires %d times: %v", len(firing), firing)
			}
			for what, series := range s.too {
				if firing := e.firing(t, name, newWorld(t, s.step, series...)); len(firing) != 1 {
					t.Errorf("%s: it fires %d times: %v", what, len(firing), firing)
				}
			}
			for what, series := range s.quiet {
				if firing := e.firing(t, name, newWorld(t, s.step, series...)); len(firing) > 0 {
					t.Errorf("%s: it fires: %v", what, firing)
				}
			}
			// A scene is of metrics that there are.
			for _, series := range slices.Concat(slices.Concat(slices.Collect(maps.Values(s.quiet))...), s.fires,
				slices.Concat(slices.Collect(maps.Values(s.too))...)) {
				labels, _, err := language.ParseSeriesDesc(series)
				if err != nil || len(there[labels.Get("__name__")]) == 0 {
					t.Errorf("%s: there is no such metric, %v", series, err)
				}
			}
		})
	}
}
