# `make demo` and `make test` are all that a fresh Debian 12 machine needs; both install what is missing first.
SHELL := /bin/bash
READY := .venv/.ready
PYTHON := .venv/bin/python
PROCESSES ?= 4

.DEFAULT_GOAL := help
.PHONY: help setup image demo demo-l2 test test-kind lint unit netns soak fuzz e2e bench bench-l2 differential kind kind-down conformance stories base docs clean

help: ## Show what can be made
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 15

$(READY): pyproject.toml constraints.txt .ci/setup
	@.ci/setup

setup: $(READY) ## Install Debian packages, a virtual environment in .venv, and closeby in it

demo: $(READY) ## Run closeby on a little cluster of network namespaces, with real traffic (KEEP=1 leaves it up)
	@$(PYTHON) -m e2e.demo $(if $(KEEP),--keep) $(DEMO_FLAGS)

demo-l2: $(READY) ## Load-balancer addresses on a LAN whose nodes fail, with a real API server, as a client sees it (KEEP=1)
	@.ci/setup e2e
	@$(PYTHON) -m e2e.binaries.build
	@$(PYTHON) -m e2e.demo.l2 $(if $(KEEP),--keep)

test: $(READY) lint ## Lint, then unit, netns and e2e tests (PROCESSES=0 for one at a time, PYTEST_FLAGS)
	@.ci/setup e2e
	@$(PYTHON) -m e2e.binaries.build
	@$(PYTHON) -m e2e.deploy.helm_build || echo "no helm could be built: the chart's tests are skipped"
	@$(PYTHON) -m tests.netns.newer_nft || echo "no newer nft could be fetched: the tests that need it are skipped"
	@echo "the tests on a real cluster are left out: make test-kind"
	@$(PYTHON) -m pytest -m "not kind" -n $(PROCESSES) $(PYTEST_FLAGS) tests e2e

test-kind: $(READY) ## Tests on a real cluster whose only service proxy is closeby, a subset of Kubernetes' own among them
	@.ci/setup kind
	@$(PYTHON) -m e2e.binaries.build --all
	@$(PYTHON) -m pytest -m kind -o faulthandler_timeout=0 e2e

lint: $(READY) ## ruff, mypy --strict, import-linter, codespell
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m mypy
	@.venv/bin/lint-imports
	@.venv/bin/codespell

unit: $(READY) ## Pure tests, in about a minute, without root
	@$(PYTHON) -m pytest tests/unit

netns: $(READY) ## Tests against this kernel, in network namespaces
	@$(PYTHON) -m tests.netns.newer_nft || echo "no newer nft could be fetched: the tests that need it are skipped"
	@$(PYTHON) -m pytest tests/netns

soak: $(READY) ## 100,000 changes with memory and files flat, and 200 kills of a daemon that writes, in ten minutes
	@CLOSEBY_SOAK=100000 CLOSEBY_CRASHES=200 $(PYTHON) -m pytest -s -o faulthandler_timeout=0 tests/netns/test_soak.py tests/netns/test_daemon_crashes.py

fuzz: $(READY) ## The laws of what reads bytes, on 5000 examples each, in ten minutes (CLOSEBY_EXAMPLES=50000)
	@CLOSEBY_EXAMPLES=$${CLOSEBY_EXAMPLES:-5000} $(PYTHON) -m pytest --timeout 0 -o faulthandler_timeout=0 $$(git ls-files 'tests/unit/**/test_*_fuzz.py') tests/unit/proxy/test_yaml_documents.py

e2e: $(READY) ## Tests against a real API server
	@.ci/setup e2e
	@$(PYTHON) -m e2e.binaries.build
	@$(PYTHON) -m e2e.deploy.helm_build || echo "no helm could be built: the chart's tests are skipped"
	@$(PYTHON) -m pytest -m "not kind" e2e

bench: $(READY) ## closeby and kube-proxy side by side (SCALE=1000x5 picks one)
	@.ci/setup e2e
	@$(PYTHON) -m e2e.binaries.build
	@$(PYTHON) -m e2e.bench $(if $(SCALE),--scale $(SCALE)) $(BENCH_FLAGS)

bench-l2: $(READY) ## What clients notice when an address moves between nodes, beside keepalived; hours (RUNS=3, BENCH_L2_FLAGS)
	@.ci/setup lan
	@$(PYTHON) -m e2e.lan --runs $(or $(RUNS),20) $(BENCH_L2_FLAGS)

differential: $(READY) ## Random worlds for closeby and for kube-proxy, and where they part (WORLDS=50, SEED=..)
	@.ci/setup e2e
	@$(PYTHON) -m e2e.binaries.build
	@$(PYTHON) -m e2e.differential $(if $(WORLDS),--worlds $(WORLDS)) $(if $(SEED),--seed $(SEED)) $(DIFFERENTIAL_FLAGS)

image: $(READY) ## closeby's container image, as build/closeby-*.tar, and in docker where a daemon runs (BASE=debian:bookworm-slim)
	@$(PYTHON) -m deploy.image.build $(if $(BASE),--base $(BASE)) $(IMAGE_FLAGS)

kind: $(READY) ## A real cluster without a service proxy (PROXY=kube-proxy for the peer, WORKERS=6 for three zones)
	@.ci/setup kind
	@PROXY=$(or $(PROXY),none) WORKERS=$(or $(WORKERS),2) $(PYTHON) -m e2e.kind up $(KIND_FLAGS)

kind-down: $(READY) ## Remove it, and whatever of it a crash left
	@$(PYTHON) -m e2e.kind down

conformance: $(READY) ## Kubernetes' own specs with kube-proxy and with closeby, and docs/conformance.md; an hour
	@.ci/setup kind
	@$(PYTHON) -m e2e.conformance all $(CONFORMANCE_FLAGS)

stories: $(READY) ## A real cluster's life, with kube-proxy and with closeby, and docs/stories.md; hours (STORY=update for one)
	@.ci/setup kind
	@$(PYTHON) -m e2e.stories $(or $(STORY),all) $(STORIES_FLAGS)

base: $(READY) ## Compile the base ruleset anew, after a change to its text
	@$(PYTHON) -m proxy.kernel.compile

docs: $(READY) ## Write docs/configuration.md anew, after a change to its tables
	@$(PYTHON) -m proxy.kubeproxy.page > docs/configuration.md

clean: ## Remove what was built here
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
