# Everything from a fresh clone: needs make and Python 3.11, 3.12 or 3.13, and fetches the rest into .venv.

PYTHON := .venv/bin/python
READY := .venv/.ready
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test faults check format bench clean

help: ## say what can be made
	@sed -n 's/^\([a-z]*\):.*## /make \1|/p' Makefile | awk -F'|' '{ printf "  %-12s %s\n", $$1, $$2 }'

$(READY): pyproject.toml scripts/setup.sh
	@./scripts/setup.sh
	@touch $(READY)

setup: $(READY) ## install Potok and its tools into .venv

demo: $(READY) ## run the live demo and open its page
	@.venv/bin/potok demo $(ARGS)

test: $(READY) ## format, lint, types, then all tests, the fast ones first (ARGS="-k joins" picks)
	@./scripts/test.sh $(ARGS)

faults: $(READY) ## break everything that can break, and compare with the right answer (ARGS="--rows 'kafka*'" picks)
	@$(PYTHON) -m tests.faults $(ARGS)

check: $(READY) ## format, lint and types only
	@./scripts/check.sh

format: $(READY) ## mend format and lint in place
	@$(PYTHON) -m ruff format .
	@$(PYTHON) -m ruff check --fix .

bench: $(READY) ## measure against hand-written Structured Streaming
	@$(PYTHON) -m benchmarks $(ARGS)

clean: ## remove .venv and every cache; your data stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis dist spark-warehouse
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
