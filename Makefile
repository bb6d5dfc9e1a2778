# make demo    set everything up and see it work          make test    set everything up and run the tests
# make test-fast   the tests that start no server and no client, in less than a minute
# make check   tests, linters and types                   make bench   measure hooks, the drain, synthesis, the brief, recall, trees and CLAUDE.md
# make chaos   kills, load, fuzz, leftovers: one table     make bench-million   recall at a million memories, and the install
# make docs    build the site in build/site               make lock    choose the versions of requirements/ anew
# make walk    what a new user sees who installs from a marketplace (tmux, minutes)
# make audit   look for known holes in those versions (asks PyPI's advisories)

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
# Processes that run tests: three for two cores, because some wait.
WORKERS ?= 3

.PHONY: demo test test-fast coverage check lint docs bench bench-million chaos walk lock audit clean

demo: $(VENV)/installed
	@$(BIN)/python demo/run.py

test: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-fast: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q -m "not slow"

# Apart from the tests: threads that start at the same moment while they are traced fail now and then (Python 3.11).
coverage: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n $(WORKERS) --cov=backstory --cov-report=term:skip-covered

check: lint test

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The reference is made anew from the code first. A page that loads anything from the network fails the build.
# The silenced warning: docs/dependencies.md has what it says about the theme.
docs: $(VENV)/installed-docs
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --clean
	@! grep -rnoE --include='*.html' '<(script|img|iframe|source)[^>]* src="?(https?:)?//[^ >]*|<link [^>]*href="?(https?:)?//[^ >]*' build/site
	@! grep -rnoE --include='*.css' '(@import|url\()[ "]*(https?:)?//[^")]*' build/site
	@echo "built: build/site/index.html (search needs a server: $(BIN)/python -m http.server -d build/site)"

bench: $(VENV)/installed-dev
	$(BIN)/python bench/hook_latency.py
	$(BIN)/python bench/drain_throughput.py
	$(BIN)/python bench/brief_latency.py
	$(BIN)/python bench/local_synthesis.py
	$(BIN)/python bench/synthesis_cost.py
	$(BIN)/python bench/recall_quality.py $(if $(LOCOMO),--locomo $(LOCOMO))
	$(if $(SESSIONS),$(BIN)/python bench/real_sessions.py $(SESSIONS) $(addprefix --questions ,$(QUESTIONS)) --seen-errors)
	$(if $(SESSIONS),$(BIN)/python bench/backfill.py $(SESSIONS))
	$(BIN)/python bench/recall_speed.py --sizes 10000,100000
	$(BIN)/python bench/mcp_start.py
	$(BIN)/python bench/docmem.py
	$(BIN)/python bench/flows.py
	$(BIN)/python bench/exchange.py
	$(BIN)/python bench/claude_md.py
	$(BIN)/python bench/newcomer.py

bench-million: $(VENV)/installed-dev
	$(BIN)/python bench/recall_speed.py
	$(BIN)/python bench/recall_speed.py --budget-install

# BACKSTORY_CHAOS=short does a little of each, JSON=file writes the figures.
chaos: $(VENV)/installed-dev
	@failed=0; \
	PYTHONPATH=bench $(BIN)/python -m chaos $(if $(JSON),--json $(JSON)) || failed=1; \
	BACKSTORY_RECOVERY_VARIANTS=200 $(BIN)/python -m pytest -q tests/store/test_recovery*.py || failed=1; \
	BACKSTORY_MCP_FUZZ=5000 $(BIN)/python -m pytest -q tests/surfaces/test_mcp_fuzz.py || failed=1; \
	BACKSTORY_SOAK_WRITES=$${BACKSTORY_SOAK_WRITES:-10000} $(BIN)/python -m pytest -q tests/surfaces/test_docmem_two_servers.py || failed=1; \
	BACKSTORY_ENDED_SERVERS=200 $(BIN)/python -m pytest -q tests/surfaces/test_listener.py -k ended_while_it_starts || failed=1; \
	exit $$failed

# Every screen, and the seconds it took, from `claude plugin marketplace add` to the first memory that is told.
walk: $(VENV)/installed-dev
	$(BIN)/python bench/marketplace_walk.py $(if $(JSON),--json $(JSON))

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "backstory needs Python 3.11 or newer; install it, or: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -f $(VENV)/bin/python; echo "no virtual environment could be made; on Debian: apt install python3-venv"; exit 1; }

# Every package has its version and its hashes in requirements/, and so has what builds ours.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

$(VENV)/installed: $(VENV)/bin/python pyproject.toml .claude-plugin/plugin.json requirements/run.txt
	@echo "installing backstory into $(VENV) ..."
	@$(PIP) --require-hashes -r requirements/run.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/installed-%: $(VENV)/bin/python pyproject.toml .claude-plugin/plugin.json requirements/%.txt
	@echo "installing backstory and what $* needs into $(VENV) ..."
	@$(PIP) --require-hashes -r requirements/$*.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@ $(VENV)/installed

# One resolution for every Python from 3.11 on and every platform. dev.txt comes first, so that the others agree with it.
LOCK := uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-strip-extras
lock: $(VENV)/installed-audit
	for list in dev run docs audit; do \
		extra= ; [ $$list = run ] || extra="--extra $$list"; [ $$list = dev ] || extra="$$extra -c requirements/dev.txt"; \
		printf 'hatchling\neditables\n' | $(BIN)/$(LOCK) pyproject.toml - $$extra -o requirements/$$list.txt || exit 1; \
	done

# --strict: a package that could not be looked up is not one without holes.
audit: $(VENV)/installed-audit
	for list in run dev docs audit; do $(BIN)/pip-audit --strict --disable-pip --require-hashes -r requirements/$$list.txt || exit 1; done

clean:
	rm -rf build/site $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage*
