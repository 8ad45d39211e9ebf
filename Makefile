# Two commands do everything: `make demo` and `make test`. Both make .venv first, and need Python 3.11 or newer only.

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
QUESTION := 지금 배송중인 제 주문들 전부, 상품명이랑 택배사·송장번호를 정리해서 알려주세요.

.PHONY: help demo test lint types arrows tests bench fix clean

help:  ## what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/demo.stamp  ## install, and answer the question about parcels on their way
	@$(BIN)/haru ask "$(QUESTION)" --customer C003

test: lint types arrows tests  ## install with the test extra, and check everything

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/test.stamp
	$(BIN)/mypy

arrows: $(VENV)/test.stamp
	$(BIN)/lint-imports --no-cache

tests: $(VENV)/test.stamp
	$(BIN)/python -m pytest -n 2 --dist worksteal

bench: $(VENV)/test.stamp  ## steps per second, beside raw sqlite3 in the same run
	$(BIN)/python -m bench

fix: $(VENV)/test.stamp  ## format, and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove what was made here
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "haru_fsm needs Python 3.11 or newer; say where it is: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing haru_fsm into $(VENV) ..." >&2
	@$(PIP) install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/test.stamp: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing haru_fsm and its test tools into $(VENV) ..." >&2
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[test]'
	@touch $@ $(VENV)/demo.stamp
