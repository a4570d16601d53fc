# Every target works at the root of a clean clone. `make` alone lists them.
SHELL := /bin/bash -o pipefail

MODULES  := $(shell sed -n 's/^[[:space:]]*\.\///p' go.work)
TOOLS    := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/hub/bin
LINT     := $(TOOLS)/golangci-lint-2.15.0
CONSUL   := $(TOOLS)/consul-1.14.11
STACK    := CGO_ENABLED=0 go run ./scripts/stack
# Three test binaries at once: each starts servers of its own, and waits for them.
# The time-out only ends a hang. What go test would vet, make check's linter vets. Links take a third less without a debugger's tables.
TESTFLAGS ?= -race -vet=off -ldflags=-s -timeout 110m -p 3
# Tests of what has one goroutine (texts held to rules, files that are read) or waits for programs: the race detector has nothing to find
# in them, and takes their time three times. They are compiled with the objects of make check.
UNRACED   := deploy/observe k8s pkg/config pkg/csvguard pkg/fault pkg/hubtest pkg/inventory pkg/jsontree pkg/markup \
	pkg/netguard pkg/picture pkg/schema pkg/seal pkg/text pkg/tool/tooltest pkg/web/i18n scripts/bench scripts/catalog \
	scripts/gen scripts/release services/admin/console/charts services/admin/console/table services/auth/apps \
	services/authoring/evidence services/authoring/lint services/authoring/lookalike services/authoring/template \
	services/client/input services/gateway/v1 services/payments/order services/query/keyword services/query/sqlguard \
	services/review-control/body services/review-control/console/evidence services/review-control/suppression \
	services/review-control/triage
# The same of single tests, with as many lives, bytes or pages that the race detector would take five to ten times their time: other
# tests of these packages do the same at once. A test of pkg/hubtest finds each of them in one of the packages, and nowhere else.
UNRACED_IN    := pkg/admission services/auth services/authoring services/authoring/cmd/authoring services/query services/review-control
UNRACED_TESTS := TestAFlood|TestOracle|TestPlainSQL|TestTransitions|TestWarningsOfDrafts|TestBoundsOfASegment|TestLargePagesEndEarly|$\
	TestLargestSegment|TestLife|TestWhatIsShownIsWhatLeaves|TestALargeDraftIsASmallPage|TestApproveShownOnAPage|TestLiesOfAnyOrder|$\
	TestVariantOnAPage|TestBadTickets|TestListsGoOn|TestRedirects|TestLinksLive|TestAppsPages|TestOldHash|TestSignInVerified|$\
	TestRolesMatrix|TestAccountPage|TestAPageKeepsOneMail|TestMemoryIsBounded|TestMemoryOfRowsIsBounded
UNRACE     = CGO_ENABLED=0 go test $(filter-out -race,$(TESTFLAGS)) $(ALONE)
RACED      = $$(go list $(MODULES:%=./%/...) | grep -vE '^hub\.internal/($(shell echo services/e2e $(UNRACED) | tr ' ' '|'))(/|$$)')
# A test runs as in a release, which knows no workspace. It is compiled in the workspace, all modules at once: a test of
# scripts/release holds what each module is made of there to what it is made of alone. No result is one of the test cache then, which
# does not see that a file of another module has changed. What a test builds is built without cgo, as in a release: make check has
# compiled the objects.
ALONE     := -exec "env -u GOGC GOWORK=off CGO_ENABLED=0"
# As the programs are built (pkg/inventory says why), so that tests, linter and programs share their objects.
export GOFLAGS += -tags=grpcnotrace
# What go build does without its links, which nobody keeps: each of 18 programs takes seconds.
COMPILE   := go list -export
# How many random lives a property is held to at each run; a change to a state machine deserves more (RAPID_CHECKS=1000).
export RAPID_CHECKS ?= 40

# The compiler takes a sixth less time when it collects garbage less often; the linter, which holds gigabytes, may hold twice as much.
# What is tested collects as ever (ALONE).
objects test retest: export GOGC = 400
check: export GOGC = 200

.DEFAULT_GOAL := help
.PHONY: help up down reset status logs doctor servers browser test objects retest test-all check bench bench-compare fuzz tidy catalog image sbom release consul

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: ## Start everything on this machine (SOURCE=mysql the sample in MySQL, SOURCE_DSN=… your own, DISCOVERY=consul, OBSERVE=1, DOCKER=1)
	@$(STACK) up

down: ## Stop everything; data stay
	@$(STACK) down

reset: ## Stop everything and remove its data
	@$(STACK) reset

status: ## Show what runs
	@$(STACK) status

logs: ## Show the logs (NAME=query for one service)
	@$(STACK) logs $(NAME)

doctor: ## Check the settings of every service against what they name, a line each
	@$(STACK) doctor

servers: ## Install the database servers that up and test need, and fetch the newer ones that tests run on beside the system
	@$(STACK) install

browser: ## Install the servers, and what test alone needs: a browser, a pooler, a DNS server, buildah
	@$(STACK) install --browser --images

# The suite waits for processes and pages half of its time, so it runs beside the rest; what both need is built before, once.
# It runs anew each time: go's test cache cannot see that the programs which it builds and starts have changed. The race detector is in
# those of its programs that do much at once.
test: browser ## Run every test, with the race detector (SERVERS=all query's tests on MySQL and the newer MariaDB as well)
	@$(MAKE) --no-print-directory objects
	@$(UNRACE) -count=1 -parallel 4 ./services/e2e/... & suite=$$!; \
	{ $(UNRACE) -p 1 $(UNRACED:%=./%/...); others=$$?; $(UNRACE) -p 1 -run '^($(UNRACED_TESTS))$$' $(UNRACED_IN:%=./%) && exit $$others; } & \
	others=$$!; status=0; \
	go test $(TESTFLAGS) $(ALONE) -skip '^($(UNRACED_TESTS))$$' $(RACED) || status=1; \
	wait $$others || status=1; wait $$suite || status=1; \
	if [ "$(SERVERS)" = all ]; then for server in mysql mariadb-next; do \
		HUB_TEST_SOURCE=$$server go test $(TESTFLAGS) $(ALONE) -count=1 ./services/query/... || status=1; \
	done; fi; \
	exit $$status

objects: ## Compile with the race detector what test links, once for all packages
	@$(COMPILE) -race $(RACED) >/dev/null

# Those that test runs without the race detector may not pass with it.
retest: ## Run some tests alone, one after the other (TESTS="TestReview|TestFlood" PACKAGES="./services/e2e")
	@$(if $(strip $(foreach p,services/e2e $(UNRACED),$(filter ./$p ./$p/%,$(PACKAGES))) $\
	$(filter $(subst |, ,$(UNRACED_TESTS)),$(subst |, ,$(TESTS)))),$(UNRACE),go test $(TESTFLAGS) $(ALONE)) -count=1 -p 1 -parallel 1 -run '^($(TESTS))$$' $(PACKAGES)

test-all: export HUB_TEST_ALL = 1
test-all: export RAPID_CHECKS = 200
test-all: test ## make test, with the whole corpora in the browser and longer random lives

# What a release is built without, and the tests' programs with: objects are compiled once for all of them.
check: export CGO_ENABLED = 0
check: $(LINT) ## gofmt, vet, lint, each module's build alone, import rules, the list of services, derived files, licences
	@unformatted=$$(gofmt -l $(MODULES)); [ -z "$$unformatted" ] || { echo "gofmt -w these files:"; echo "$$unformatted"; exit 1; }
	$(LINT) run --allow-parallel-runners $(MODULES:%=./%/...)
	@for m in $(MODULES); do echo "build $$m alone"; (cd $$m && GOWORK=off $(COMPILE) ./... >/dev/null && GOWORK=off go mod tidy -diff >/dev/null) || { echo "$$m does not build alone, or is not tidy: make tidy"; exit 1; }; done
	go test -count=1 -run "TestImportRules|TestFloors|TestRoomsAreSmall|TestPagesUseTheKit|TestCatalogues|Comments" ./pkg/hubtest
	go test -count=1 ./pkg/inventory ./pkg/hubtest/contract
	go run ./scripts/catalog -check
	go run ./scripts/release licences

bench: servers ## Run the benchmarks: Hub beside the in-process limit and, with Node, its peers (SOURCE=mysql MySQL beside MariaDB); the console's pages; the audit log at five million rows; a thousand webhooks in two seconds
	go run ./scripts/bench --mysql=$(if $(filter mysql,$(SOURCE)),true,false)
	go test -run '^$$' -bench AuditLog -benchtime 1x -timeout 30m ./services/admin/postgres -args -audit.report=audit.md
	go test -run '^$$' -bench Webhooks -benchtime 1x ./services/payments

# What each call passes, in the packages that it passes.
HOT := Validate|Present|Accept|Fingerprint|Endpoint|Small|Call$$|Text|Take|Parse|Read/hub
HOT_PACKAGES := ./pkg/schema ./pkg/caller ./pkg/write ./pkg/telemetry ./pkg/remote/direct ./pkg/admission ./services/gateway/mcp \
	./services/gateway/catalog ./services/query/sqlguard ./services/query/mysql/statements
BENCHSTAT := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

bench-compare: servers ## Hold times and allocations of the hot paths against scripts/bench/baseline.txt; times of another machine tell nothing (KEEP=1 writes it anew)
	@mkdir -p .hub/bench
	go test -run '^$$' -bench '$(HOT)' -benchmem -benchtime 100ms -count 6 $(HOT_PACKAGES) | tee .hub/bench/now.txt
	@if [ -n "$(KEEP)" ]; then cp .hub/bench/now.txt scripts/bench/baseline.txt; else \
		GOWORK=off go run $(BENCHSTAT) scripts/bench/baseline.txt .hub/bench/now.txt; fi

fuzz: ## Fuzz the parsers, and what the SQL guard accepts on a server, a minute each
	go test -run '^$$' -fuzz FuzzParse -fuzztime 1m ./services/query/sqlguard
	go test -run '^$$' -fuzz FuzzCapped -fuzztime 1m ./services/query/sqlguard
	go test -v -run 'TestCrash$$' -count 1 -crash.for 1m ./services/query/sqlguard
	go test -v -run 'TestMemory$$' -count 1 -memory.for 1m ./services/query/sqlguard
	go test -run '^$$' -fuzz FuzzNextRow -fuzztime 1m -fuzzminimizetime 20x ./services/query/mysql/server
	go test -run '^$$' -fuzz FuzzValidate -fuzztime 1m ./pkg/schema
	go test -run '^$$' -fuzz FuzzAValue -fuzztime 1m ./services/gateway/v1
	go test -run '^$$' -fuzz FuzzMake -fuzztime 1m -fuzzminimizetime 20x ./services/client/input
	go test -run '^$$' -fuzz FuzzAnswer -fuzztime 1m -fuzzminimizetime 20x ./services/client/output
	go test -run '^$$' -fuzz FuzzAnswer -fuzztime 1m -fuzzminimizetime 20x ./pkg/remote/direct
	go test -run '^$$' -fuzz FuzzRows -fuzztime 1m ./services/review-control/suppression
	go test -run '^$$' -fuzz FuzzRead -fuzztime 1m -fuzzminimizetime 20x ./services/review-control/body
	go test -run '^$$' -fuzz FuzzOf -fuzztime 1m ./services/admin/console/table
	go test -run '^$$' -fuzz FuzzClean -fuzztime 1m -fuzzminimizetime 20x ./pkg/markup

tidy: ## Tidy each module by itself, and the workspace
	go work sync
	@for m in $(MODULES); do (cd $$m && GOWORK=off go mod tidy) || exit 1; done

catalog: ## Derive deploy/catalog.json and services/gateway/TOOLS.md from the services, and the operator's rules from Prometheus'
	go run ./scripts/catalog

image: ## Build the container image of one service, hub/query:dev, with docker or buildah (SERVICE=query ARCHIVE=file.tar)
	@[ -n "$(SERVICE)" ] || { echo "make image SERVICE=query"; exit 1; }
	@go run ./scripts/release image $(SERVICE) $(ARCHIVE:%=--archive %)

sbom: ## Write the bill of materials of one service, bin/release/query/sbom.cdx.json (SERVICE=query)
	@[ -n "$(SERVICE)" ] || { echo "make sbom SERVICE=query"; exit 1; }
	@go run ./scripts/release sbom $(SERVICE)

release: ## Check, build and tag a release of one service; nothing is pushed (SERVICE=query VERSION=v1.2.3)
	@[ -n "$(SERVICE)" ] && [ -n "$(VERSION)" ] || { echo "make release SERVICE=query VERSION=v1.2.3"; exit 1; }
	@go run ./scripts/release cut $(SERVICE) $(VERSION)

consul: $(CONSUL) ## Build the Consul agent that the discovery tests run against (minutes, once a machine)

$(CONSUL):
	@echo "building the Consul agent; this takes some minutes, once"
	@mkdir -p $(TOOLS)
	cd scripts/consul && GOWORK=off go build -trimpath -ldflags='-s -w' -o $@ github.com/hashicorp/consul

$(LINT):
	@echo "building golangci-lint; this takes some minutes, once"
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS)/golangci-lint.build GOWORK=off go install -ldflags='-s -w' github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
	mv $(TOOLS)/golangci-lint.build/golangci-lint $@
