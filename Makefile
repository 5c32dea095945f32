# Two commands do everything: `make run` and `make test`. `make help` names the rest.
# Each target can be repeated, and works offline once it has fetched what it needs.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

TOOLCRIB := target/release/toolcrib
SERVERS := .servers
CLIENTS := .clients
SUITE := .conformance
TEST_SERVERS := .test-servers
export CARGO_TERM_PROGRESS_WHEN ?= auto

.PHONY: help run test check build servers clients test-servers suite models conformance eval figures bench bench-peers bench-refresh serve clean

help: ## Names all targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

run: build models servers ## Fetches, builds, shows one search and one run, and serves.
	@echo "== one search"
	$(TOOLCRIB) search "post a message to a Slack channel"
	@echo "== one run, on a real MCP server"
	$(TOOLCRIB) run everything/echo --args '{"message": "hello from Toolcrib"}'
	@echo "== serving; stop with Ctrl-C"
	$(TOOLCRIB) serve $(SERVE_ARGS)

build: ## Builds the release program.
	@command -v cargo >/dev/null || { echo "cargo is missing: install the Rust toolchain, 1.92 or newer"; exit 1; }
	@echo "== building (five to ten minutes the first time)"
	cargo build --release --locked

models: build ## Fetches the embedding model and the ONNX runtime by SHA-256.
	@echo "== model and runtime"
	$(TOOLCRIB) models fetch

servers: ## Installs the reference MCP servers that need no credentials.
	@command -v python3 >/dev/null || { echo "python3 is missing: install Python 3.10 or newer, with pip"; exit 1; }
	@echo "== reference MCP servers"
	python3 catalog/reference/install.py catalog/reference $(SERVERS)

clients: ## Installs the real MCP clients that the tests use.
	@echo "== real MCP clients, for the tests"
	python3 catalog/reference/install.py tests/clients $(CLIENTS)

# Optional for `make test`, which says what it skips: the suite's Node is for Linux on x86-64.
suite: ## Installs the official conformance suite and the Node it needs.
	@echo "== the official conformance suite, for the tests"
	@if cmp -s tests/conformance/package-lock.json $(SUITE)/installed.json; then echo "is installed in $(SUITE)"; \
	elif [ "$$(uname -sm)" != "Linux x86_64" ]; then echo "note: not installed, it needs Linux on x86-64"; \
	elif ! command -v npm >/dev/null; then echo "note: not installed, npm is missing: install Node.js"; \
	else \
		mkdir -p $(SUITE); rm -f $(SUITE)/installed.json; \
		cp tests/conformance/package.json tests/conformance/package-lock.json $(SUITE)/; \
		npm ci --prefix $(SUITE) --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error; \
		cp $(SUITE)/package-lock.json $(SUITE)/installed.json; \
	fi

test-servers: ## Installs the real MCP servers that only the tests use.
	@echo "== real MCP servers, for the tests"
	python3 catalog/reference/install.py tests/servers $(TEST_SERVERS)

test: servers test-servers clients suite test-models ## Runs all tests.
	@command -v cargo-nextest >/dev/null || { echo "cargo-nextest is missing: cargo install --locked cargo-nextest"; exit 1; }
	@echo "== attacks and their tests (docs/security.md)"
	@sed -nE 's/^\| (.*) \| .* \| (`.*`) \|$$/\1:\n    \2/p' docs/security.md | tr -d '`' | fold -s -w 110
	@echo "== tests"
	cargo test --locked --doc --quiet
	cargo nextest run --locked --no-fail-fast $(NEXTEST_ARGS)

# Built as the tests are, so that nothing is compiled twice.
.PHONY: test-models
test-models:
	@echo "== building the tests (about five minutes the first time)"
	cargo test --locked --no-run
	@echo "== model and runtime, for the tests"
	target/debug/toolcrib models fetch minilm-int8
	@target/debug/toolcrib search "warm the vectors up" >/dev/null

# With 50 tenants and five real servers; `make test` holds a short one.
SOAK_SECONDS ?= 600

.PHONY: soak
soak: build servers ## Ten minutes of 50 tenants on real servers, beside one that fails in each hostile way.
	@echo "== $(SOAK_SECONDS) s and two minutes around them; it needs 6 GB of memory"
	TOOLCRIB_TEST_PROGRAM=$(abspath $(TOOLCRIB)) TOOLCRIB_SOAK_SECONDS=$(SOAK_SECONDS) cargo nextest run --locked --profile soak --no-capture -E 'test(soak::)'

check: ## Format, lints, documentation, licences.
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --document-private-items --quiet
	@if command -v cargo-deny >/dev/null; then cargo deny --offline check --config .config/deny.toml bans licenses sources; \
	else echo "note: cargo-deny is not installed, so licences and sources are not checked"; fi

# A folder with labelled queries, as SET.queries.jsonl and SET.tools.jsonl, and a catalog in normal
# form for sets without tools of their own.
LABELLED ?= ../shared/eval
LABELLED_CATALOG ?= ../shared/catalogs/merged/catalog.jsonl

conformance: suite ## Runs the official conformance suite against fixture and program (Linux on x86-64).
	@test -f $(SUITE)/installed.json || { echo "the suite is not installed here: see above"; exit 1; }
	cargo build --locked --bin toolcrib --example conformance_fixture
	@echo "== both frozen sets of server requirements (half a minute)"
	python3 tests/conformance/run.py target/debug/examples/conformance_fixture target/debug/toolcrib $(SUITE)

eval: build models ## Measures search quality on the labelled queries of LABELLED, against baselines and gate.
	@test -d "$(LABELLED)" || { echo "no labelled queries: set LABELLED to a folder of SET.queries.jsonl"; exit 1; }
	$(TOOLCRIB) eval --all $(LABELLED) --catalog $(LABELLED_CATALOG) --baselines --gate docs/eval-gate.json

figures: build models ## Prints the figures of the README: start, memory, one search.
	python3 benches/figures.py $(TOOLCRIB) "$(MODELS)"

MODELS := $${TOOLCRIB_HOME:-$${XDG_DATA_HOME:-$$HOME/.local/share}/toolcrib}/models

bench: models ## Runs the benchmarks.
	TOOLCRIB_BENCH_MODEL="$(MODELS)/minilm-int8" \
	TOOLCRIB_BENCH_RUNTIME="$$(ls -d "$(MODELS)"/runtime-*/*onnxruntime* | head -1)" cargo bench --locked

CATALOGS ?= ../shared/catalogs

bench-refresh: build models ## Measures what a refresh costs, on the largest catalog of CATALOGS.
	python3 benches/refresh.py $(TOOLCRIB) "$(MODELS)" $(CATALOGS)/merged/extended.jsonl

PEERS := target/peers

bench-peers: build models ## Measures quality and speed beside fastmcp and ratel-ai, which it installs.
	@test -d "$(LABELLED)" || { echo "no labelled queries: set LABELLED to a folder of SET.queries.jsonl, and CATALOGS"; exit 1; }
	@echo "== peers, into $(PEERS)"
	test -x $(PEERS)/venv/bin/python || python3 -m venv $(PEERS)/venv
	$(PEERS)/venv/bin/pip install --quiet --disable-pip-version-check --requirement benches/peers/requirements.txt
	mkdir -p $(PEERS)/home
	ln -sfn "$(MODELS)" $(PEERS)/home/models
	@echo "== the same catalogs and queries for all (half an hour; the first time an hour, for embedding)"
	$(PEERS)/venv/bin/python benches/peers/bench.py $(TOOLCRIB) $(PEERS)/home $(LABELLED) $(CATALOGS) --json $(PEERS)/results.json $(PEERS_ARGS)

serve: ## Serves without the demonstration.
	$(TOOLCRIB) serve $(SERVE_ARGS)

clean: ## Removes what was built and installed here; models stay in the data folder.
	cargo clean
	rm -rf $(SERVERS) $(CLIENTS) $(TEST_SERVERS) $(SUITE)
