# Each target sets up what it needs in .venv, so it works on a bare clone with Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PART := $(BIN)/python -m pytest -q

.DEFAULT_GOAL := help
.PHONY: help run test e2e soak check bench gpu docs cluster mutate lock chart

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Sevenhop needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; try make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing what requirements.lock lists into $(VENV) (about a minute, once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

run: $(READY) ## the demo: no cluster, no account, under a minute
	@$(BIN)/sevenhop demo

test: $(READY) ## unit, conformance, architecture and golden tests: Python only, under three minutes
	@$(PART) -m "not e2e" -n auto --dist loadfile

e2e: $(READY) ## against a real control plane, KWOK and the KubeRay operator, built once and kept
	@$(BIN)/python -m tests.testbed build
	@$(PART) -m "e2e and not soak" -n 2 --dist loadfile tests/conformance tests/testbed tests/e2e

soak: $(READY) ## the same tests with many more rounds
	@$(BIN)/python -m tests.testbed build
	@SEVENHOP_ROUNDS=soak $(PART) -m e2e tests/e2e tests/conformance

check: $(READY) ## format, lint, types, layers, lock
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache | tail -5
	@if grep -nE 'https?://|index-url' requirements.lock; then echo "requirements.lock names a host" >&2; exit 1; fi

chart: $(READY) ## the chart by real helm and a real API server, its rights one by one, and the steps of the image
	@$(BIN)/python -m tests.testbed build
	@$(PART) -s -m e2e tests/e2e/test_chart.py tests/e2e/test_chart_rights.py tests/e2e/test_chart_write_rights.py tests/e2e/test_image.py

bench: $(READY) ## medians and ratios against the aims
	@$(BIN)/python -m bench

gpu: $(READY) ## the GPU agent on a double of NVIDIA's library, and on this machine's GPU if it has one
	@$(PART) -s -m e2e tests/e2e/test_gpu_agent.py

mutate: $(READY) ## break the guards on purpose, one change at a time: a test must notice each (SAMPLE=40 tries 40)
	@$(BIN)/python -m tests.mutation $(if $(SAMPLE),--sample $(SAMPLE))

docs: $(READY) ## render docs/reference from the code
	@$(BIN)/python -m docs.render

cluster: $(READY) ## leave a real control plane with demo nodes running, print its KUBECONFIG
	@$(BIN)/python -m tests.testbed up

lock: $(READY) ## renew requirements.lock
	@printf 'hatchling>=1.27\neditables>=0.5\n' > $(VENV)/build.in
	@$(BIN)/uv pip compile pyproject.toml $(VENV)/build.in --group dev --extra scaled --extra agent --extra otel --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate --universal --python-version 3.11 -q -o requirements.lock
