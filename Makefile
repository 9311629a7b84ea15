# Requires make and Python 3.11, 3.12 or 3.13; installs everything else into .venv.

PYTHON := .venv/bin/python
READY := .venv/.ready
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test spark faults check format chart bench docs clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /make \1|/p' Makefile | awk -F'|' '{ printf "  %-12s %s\n", $$1, $$2 }'

$(READY): pyproject.toml scripts/setup.sh
	@./scripts/setup.sh
	@touch $(READY)

setup: $(READY) ## install Potok and its tools into .venv

demo: $(READY) ## run the live demo and open its web page
	@.venv/bin/potok demo $(ARGS)

test: $(READY) ## check format, lint and types, then run all tests, fast ones first (ARGS="-k joins" selects)
	@./scripts/test.sh $(ARGS)

spark: $(READY) ## run the tests that use Spark with another version of it (VERSION=4.2.1)
	@./scripts/spark.sh $(or $(VERSION),4.2.1) $(ARGS)

faults: $(READY) ## inject faults and compare the results with plain Python (ARGS="--rows 'kafka*'" selects)
	@$(PYTHON) -m tests.faults $(ARGS)

check: $(READY) ## check format, lint and types only
	@./scripts/check.sh

format: $(READY) ## fix format and lint in place
	@$(PYTHON) -m ruff format .
	@$(PYTHON) -m ruff check --fix .

chart: $(READY) ## render the Helm chart and validate its manifests; builds helm with Go if it is missing
	@./scripts/chart.sh

bench: $(READY) ## compare throughput with hand-written Structured Streaming
	@$(PYTHON) -m benchmarks $(ARGS)

docs: $(READY) ## build the documentation site in site/
	@$(PYTHON) -m docs.site

clean: ## remove .venv and all caches; data is kept
	rm -rf .venv site .mypy_cache .ruff_cache .pytest_cache .hypothesis dist spark-warehouse
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
