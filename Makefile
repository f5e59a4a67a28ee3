# Every command here creates its own environment first: a fresh clone needs Python >= 3.11 and make, no more.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Real data sets, where a folder of them lies beside the clone; tests that need them say so when it is absent.
VMA_DATA ?= $(wildcard ../shared/data)
export VMA_DATA

.PHONY: install lint types browser docs test test-engine fuzz kills load lock licences quickstart release clean

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell README.md CHANGELOG.md CONTRIBUTING.md docs src/vma benchmarks tools

types: install
	$(BIN)/mypy

# Chromium for the tests of the page, from the distribution's packages.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do command -v $$name >/dev/null && exit 0; done; \
	as=; [ "$$(id -u)" = 0 ] || as="sudo -n"; \
	{ $$as apt-get -q update && $$as apt-get -qy install --no-install-recommends chromium; } || \
	echo "There is no Chromium and none could be installed: the tests of the page are skipped, or fail where CI is set."

# The site, with its notebooks executed; a warning is an error. Open site/index.html.
docs: install
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs site
	$(BIN)/python tools/check_site.py site

test: lint types browser
	$(BIN)/python -m pytest --numprocesses 2 --jaxtyping-packages=vma,benchmarks.speed,beartype.beartype

# Memories on a real Milvus server, which is fetched into .engine, killed and started again. Skipped where it cannot be
# had, but for CI. It and the tests have a network of their own, so that nobody else can reach it.
test-engine: install
	$(BIN)/python -m tools.engine install || [ -z "$$CI" ]
	VMA_ENGINE=1 OMP_NUM_THREADS=1 $(BIN)/python -m tools.alone $(BIN)/python -m pytest tests/engine --durations 5 \
	--jaxtyping-packages=vma,benchmarks.speed,beartype.beartype

# Attacks for hours: damaged and hostile files (a budget of them is part of the tests), and kills at random moments.
# They go on after the inputs that results/fuzz-*.json tells of.
INPUTS ?= 500000
fuzz: install
	$(BIN)/python -m tests.fuzz.outside --inputs $(INPUTS) --minutes 600
	$(BIN)/python -m tests.fuzz.inside --inputs $(INPUTS) --minutes 600

KILLS ?= 1000
kills: install
	$(BIN)/python -m tests.kills --kills $(KILLS)

# The packages of constraints.txt with the hashes of what pip takes here, and the page of their licences.
lock: install
	$(BIN)/python -m tools.lock

licences: install
	$(BIN)/python -m tools.licences

# Many clients of the page's server at once, slow ones among them; how many and how long are options.
LOAD ?= --clients 500 --minutes 10
load: install
	$(BIN)/python -m tests.load $(LOAD)

# What the quickstart needs, without the tools of developers.
$(VENV)/installed-quickstart: pyproject.toml constraints.txt
	[ $(VENV)/installed -nt pyproject.toml ] || { $(PYTHON) -m venv $(VENV) && \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[fast,plots]'; }
	touch $@

quickstart: $(VENV)/installed-quickstart
	$(BIN)/vma quickstart

# Is what would be uploaded fit for use? Nothing is uploaded.
release: install
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt '.[release]'
	$(BIN)/python tools/check_release.py

clean:
	rm -rf site $(VENV) .pytest_cache .mypy_cache .ruff_cache
