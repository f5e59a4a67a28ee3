# Every command here creates its own environment first: a fresh clone needs Python >= 3.11 and make, no more.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Real data sets, where a folder of them lies beside the clone; tests that need them say so when it is absent.
VMA_DATA ?= $(wildcard ../shared/data)
export VMA_DATA

.PHONY: install lint types test quickstart clean

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy

test: lint types
	$(BIN)/python -m pytest --numprocesses 2 --jaxtyping-packages=vma,beartype.beartype

quickstart: install
	$(BIN)/vma quickstart

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
