# Every command here creates its own environment first: a fresh clone needs Python >= 3.11 and make, no more.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Real data sets, where a folder of them lies beside the clone; tests that need them say so when it is absent.
VMA_DATA ?= $(wildcard ../shared/data)
export VMA_DATA

.PHONY: install lint types browser test quickstart clean

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

# Chromium for the tests of the page, from the distribution's packages.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do command -v $$name >/dev/null && exit 0; done; \
	as=; [ "$$(id -u)" = 0 ] || as="sudo -n"; \
	{ $$as apt-get -q update && $$as apt-get -qy install --no-install-recommends chromium; } || \
	echo "There is no Chromium and none could be installed: the tests of the page are skipped, or fail where CI is set."

test: lint types browser
	$(BIN)/python -m pytest --numprocesses 2 --jaxtyping-packages=vma,benchmarks.speed,beartype.beartype

# What the quickstart needs, without the tools of developers.
$(VENV)/installed-quickstart: pyproject.toml constraints.txt
	[ $(VENV)/installed -nt pyproject.toml ] || { $(PYTHON) -m venv $(VENV) && \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[fast,plots]'; }
	touch $@

quickstart: $(VENV)/installed-quickstart
	$(BIN)/vma quickstart

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
