# Needs make, git and Python 3.11 or newer. `make demo` is where to start.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Most tests wait, for processes or for time to pass, and two of them can wait at once.
TEST_JOBS ?= 2
DEMO_STAMP := $(VENV)/.installed-for-demo
DEV_STAMP := $(VENV)/.installed-for-development
CHAOS_STAMP := $(VENV)/.installed-for-chaos
# The vendor SDK ignores NO_PROXY, so whatever speaks to the emulator runs without proxies.
NO_PROXIES := env -u HTTP_PROXY -u HTTPS_PROXY -u ALL_PROXY -u http_proxy -u https_proxy -u all_proxy

.PHONY: demo test test-long chaos lint types format clean bench

## A real Airflow trains on an emulated cloud and survives losing its machine. DEMO_ARGS="--exit --json out.json"
demo: $(DEMO_STAMP)
	@PAI_SPOT_DEMO_INSTALL_SECONDS=$$(cat $(DEMO_STAMP)) exec $(BIN)/pai-spot demo $(DEMO_ARGS)

## All tests but the long ones. TEST_ARGS='-m "not end_to_end"' leaves out those that start an Airflow.
test: $(DEV_STAMP)
	$(NO_PROXIES) $(BIN)/python -m pytest --numprocesses $(TEST_JOBS) --no-loadscope-reorder $(TEST_ARGS)

## What takes minutes on a real Airflow: tasks ended in every way, runs made anew, all of Airflow dead for a while, copied logs.
test-long: $(DEV_STAMP)
	$(NO_PROXIES) $(BIN)/python -m pytest -m long $(TEST_ARGS)

## Kills and breaks everything under a production-like Airflow. Needs PostgreSQL and Redis. CHAOS_ARGS="--seeds 1,2,3"
chaos: $(CHAOS_STAMP)
	@$(NO_PROXIES) $(BIN)/python tests/chaos $(CHAOS_ARGS)

## What it costs, as JSON lines; outside CI, since machines are noisy. About two hours; BENCH_RUNS=1 for less.
BENCH_RUNS ?= 3
BENCH := AIRFLOW_HOME=$$(mktemp -d) $(NO_PROXIES) $(BIN)/python tests/benchmarks
bench: $(DEV_STAMP)
	@$(BENCH)/import_cost.py
	@$(BENCH)/dag_parse.py
	@$(BENCH)/emulator_requests.py $(BENCH_RUNS)
	@$(BENCH)/storm.py $(BENCH_RUNS)
	@$(BENCH)/waiting_fleet.py $(BENCH_RUNS)
	@$(BENCH)/real_triggerer.py

lint: $(DEV_STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports

types: $(DEV_STAMP)
	$(BIN)/mypy

format: $(DEV_STAMP)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) .demo dist build

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; try: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# The stamp holds how many seconds the installation took; the demo reports it.
$(DEMO_STAMP): pyproject.toml | $(BIN)/python
	@echo "Installing Airflow and this provider into $(VENV) (a minute or two, once) ..."
	@began=$$(date +%s); \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[examples]' && \
	echo $$(( $$(date +%s) - began )) > $@

# `pip install --group` came with pip 25.1.
$(DEV_STAMP): pyproject.toml $(DEMO_STAMP)
	@echo "Installing what tests and checks need ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group test --group lint
	@touch $@

$(CHAOS_STAMP): pyproject.toml $(DEMO_STAMP)
	@echo "Installing what the chaos suite needs ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group chaos
	@touch $@
