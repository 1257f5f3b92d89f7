# make demo | test | test-all | lint | bench | gallery | docs: each works alone, on its first run, from a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-all lint bench gallery docs clean

demo: $(VENV)/.core
	$(BIN)/meanfield demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-all: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/.test
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

gallery: $(VENV)/.test
	$(BIN)/meanfield experiment gallery --out docs/gallery

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable .
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable ".[test]"
	touch $@ $(VENV)/.core

$(VENV)/.bench: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable ".[test,bench]"
	touch $@ $(VENV)/.core

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable ".[test,docs]"
	touch $@ $(VENV)/.core

clean:
	rm -rf $(VENV) build dist site
