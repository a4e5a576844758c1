SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help test test-all test-integrations soak lint demo package publish bench-speed bench-linear bench-training bench-loading bench-certify bench-audit docs docs-catalog results docs-results clean

VENV   := .venv
BIN    := $(VENV)/bin
BASE   := $(shell command -v python3.11 || command -v python3)
WORKERS ?= 2
# a thread for each worker: threads that compete for cores are many times slower
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal
CODE   := conftest.py src tests examples benchmarks tools docs/conf.py docs/pictures.py setup.py

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

test: lint ## linters, types and the tests that are not slow (at most eight minutes on two cores)
	$(PYTEST) -m "not slow"

test-all: lint ## everything: all tests, each framework in its environment, the package (CI runs this)
	$(PYTEST) -m "not alone"
	LOSSFORGE_KERNEL=off $(PYTEST) -m "not slow" tests/test_laws.py tests/loss tests/base
	OMP_NUM_THREADS=1 $(BIN)/pytest -m alone tests/benchmark
	$(MAKE) test-integrations package

test-integrations: $(VENV)/.dev ## the adapters against each framework, in environments of their own (ARGS="hf")
	$(BIN)/python tests/integrations/environments.py $(ARGS)

soak: $(VENV)/.dev ## the whole round of random attacks, of which test-all runs a fiftieth (ARGS="losses --seeds 0:1000")
	$(BIN)/python tests/soak $(ARGS)

lint: $(VENV)/.dev ## ruff and mypy
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy

demo: $(VENV)/.bench ## eight losses on digits with noisy labels, and a report of it (two minutes on two cores)
	$(BIN)/lossforge bench digits --noise clean,symmetric:0.6,asymmetric:0.4 --store runs/digits $(ARGS)
	$(BIN)/lossforge report runs/digits --open

bench-speed: $(VENV)/.bench ## time and memory of the losses, in units of cross entropy (ARGS="--quick"; ARGS="--write docs/contract.md" keeps the tables)
	$(BIN)/python benchmarks/speed.py $(ARGS)

bench-linear: $(VENV)/.bench ## memory and time of a large last layer in chunks against all logits (ARGS="--repeats 1")
	$(BIN)/python benchmarks/linear.py $(ARGS)

bench-training: $(VENV)/.bench ## images/s of training against a plain loop (ARGS="--quick")
	$(BIN)/python benchmarks/training.py $(ARGS)

bench-loading: $(VENV)/.bench ## images/s of augmented batches against a pipeline of single images (ARGS="--quick")
	$(BIN)/python benchmarks/loading.py $(ARGS)

bench-certify: $(VENV)/.bench ## milliseconds of one call of certify (ARGS="--quick")
	$(BIN)/python benchmarks/certify.py $(ARGS)

bench-audit: $(VENV)/.dev ## how often `lossforge audit` is right, on simulated cases; continues where it stopped (ARGS="--limit 3"; ARGS="--pack --write" keeps records and tables)
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/audit.py $(ARGS)

docs: $(VENV)/.dev ## the documentation site, in build/docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo build/docs/index.html

docs-catalog: $(VENV)/.dev ## write docs/catalog.md from the catalogue
	@mkdir -p docs
	$(BIN)/python -m lossforge losses --markdown > docs/catalog.md

results: $(VENV)/.bench ## do every run of docs/results.md again and compare with what is committed (hours; ARGS="cifar10 --sample 40" does some)
	$(BIN)/python benchmarks/results.py run $(ARGS)
	$(BIN)/python benchmarks/results.py check $(ARGS)

docs-results: $(VENV)/.bench ## write docs/results.md and sections of choose.md and methods.md from the committed runs
	$(BIN)/python benchmarks/results.py write

package: $(VENV)/.dev ## sdist and wheels in build/dist, the wheels tried where there is torch alone (ARGS="python3.12 python3.13")
	$(BIN)/python tests/clean_install.py $(ARGS)

publish: $(VENV)/.release ## build, check and upload a release, if the tree is clean and the changelog has it (ARGS="--dry-run")
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tools/publish.py $(ARGS)

clean: ## remove the environment and everything generated
	rm -rf $(VENV) .venvs build dist runs docs/_plots docs/_extra src/*.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests examples benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f src/lossforge/kernels/_rows*

# An environment that exists is used as it is; the stamps say which extra was installed into it.
$(BIN)/python:
	@test -n "$(BASE)" || { echo "lossforge needs Python 3.11.4 or newer on the PATH" >&2; exit 1; }
	@$(BASE) -c 'import sys; sys.exit(sys.version_info < (3, 11, 4))' \
	  || { echo "lossforge needs Python 3.11.4 or newer, $(BASE) is older" >&2; exit 1; }
	$(BASE) -m venv $(VENV)

KERNEL := $(wildcard src/lossforge/kernels/*.[ch])
$(VENV)/.%: pyproject.toml setup.py constraints.txt $(KERNEL) | $(BIN)/python
	@echo "installing what '$*' needs into $(VENV), once"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$*]'
	@touch $@
