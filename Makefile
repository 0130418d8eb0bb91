# Everything a developer or a player's host needs; a bare machine has Python 3.11 with pip, and make.
# Nothing is installed outside this folder: uv lives in .uv-bootstrap, everything else in .venv.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
UV_VERSION := 0.13.9
DATA ?=
# Tests mostly wait for servers and deadlines: two workers on two cores halve the time, more would make deadlines slip.
# Files with few tests are the long ones (chaos): they must not come last, when nothing else is left to share out.
WORKERS ?= 2

BOOTSTRAP := .uv-bootstrap
UV := $(BOOTSTRAP)/bin/uv
UV_STAMP := $(BOOTSTRAP)/.uv-$(UV_VERSION)
SYNC_STAMP := .venv/.synced
BIN := .venv/bin
PROTOS := $(shell find protos -name '*.proto')

export UV_CACHE_DIR := $(CURDIR)/$(BOOTSTRAP)/cache
export UV_PYTHON_DOWNLOADS := never

.PHONY: help setup demo up test check proto bench lock

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(SYNC_STAMP) ## make .venv with everything

demo: $(SYNC_STAMP) ## six players play a match on a throw-away installation, then it is proved from its log
	$(BIN)/gouji demo

up: $(SYNC_STAMP) ## start a whole installation here; make up DATA=folder to say where it keeps its state
	$(BIN)/gouji up $(if $(DATA),--data $(DATA))

test: $(SYNC_STAMP) ## run every test but the benchmarks
	$(BIN)/pytest --ignore=tests/bench --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder -p no:benchmark

check: $(SYNC_STAMP) ## everything that can be said without running the tests
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code
	$(UV) lock --check --offline
	$(BIN)/hadolint deploy/Dockerfile
	$(BIN)/docker-compose --env-file deploy/compose.env.example -f deploy/compose.yaml config --quiet

proto: ## generate the stubs in gen/ again
	rm -f $(SYNC_STAMP)
	$(MAKE) $(SYNC_STAMP)

bench: $(SYNC_STAMP) ## run the benchmarks
	$(BIN)/pytest tests/bench

lock: $(UV_STAMP) ## resolve the dependencies again, always from the public index
	$(UV) lock --no-config

# pip alone is enough, even where Python comes without venv; the stamp names the version, so a new one replaces the old.
$(UV_STAMP):
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --upgrade --target $(BOOTSTRAP) uv==$(UV_VERSION)
	touch $@

$(SYNC_STAMP): $(UV_STAMP) pyproject.toml uv.lock $(PROTOS)
	$(UV) sync --frozen --extra embedded --python $(PYTHON)
	touch $@
