# Every target makes what it needs first: on a machine with Python and make, `make demo` and
# `make test` work on a fresh clone. Integration tests build their servers first, which needs Go.

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
RUNTIME := $(VENV)/.runtime
DEV     := $(VENV)/.dev
VECTORS ?= tests/conformance/vectors
HOURS   ?= 2

.PHONY: demo test test-slow chaos soak certify fuzz lint format bench envtest envtest-older browser conformance \
	image-test dist reproducible lint-release clean

$(RUNTIME): pyproject.toml
	@echo "installing kubesched into $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(DEV): pyproject.toml $(RUNTIME)
	@echo "installing development tools into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(RUNTIME)
	@$(BIN)/kubesched demo $(ARGS)

test: $(DEV)
	$(BIN)/python -m pytest tests/unit tests/conformance tests/chaos tests/soak tests/certify tests/fuzz --numprocesses 2 --quiet $(ARGS)
	@$(MAKE) --no-print-directory envtest
	$(BIN)/python -m pytest tests/integration -m 'not slow' --quiet $(ARGS)

# Crashes in the middle of thousands of pods, comparisons with the real scheduler, older API servers,
# the web page.
test-slow: $(DEV) envtest envtest-older browser
	$(BIN)/python -m pytest tests/integration -m slow --quiet $(ARGS)
	$(BIN)/python -m pytest tests/browser --quiet $(ARGS)

lint: $(DEV)
	$(BIN)/ruff format --check src tests tools benchmarks examples deploy
	$(BIN)/ruff check src tests tools benchmarks examples deploy
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(DEV)
	$(BIN)/ruff format src tests tools benchmarks examples deploy
	$(BIN)/ruff check --fix src tests tools benchmarks examples deploy

# A Chromium for the browser tests, installed if there is none.
browser:
	@$(PYTHON) tools/browser.py

# Schedulers through faults, ours and the real one; a judge looks at every state that etcd had.
chaos: $(DEV) envtest
	@$(BIN)/python -m tests.chaos $(ARGS)

# A scheduler for hours in a cluster that never rests: its memory must not grow. `make soak HOURS=2`,
# `make soak HOURS=1 ARGS='--pods-per-second 0'` for an idle cluster.
soak: $(DEV) envtest
	@$(BIN)/python -m tests.soak --hours $(HOURS) $(ARGS)

# Random cases asked of kube-scheduler and of ours: `make certify ARGS='--minutes 60 --seed 1'` for
# all themes, `make certify ARGS='--theme volumes --seed 17 --seeds 1'` for one case again.
certify: $(DEV) envtest
	@$(BIN)/python -m tests.certify $(ARGS)

# Hostile input, guided by coverage where atheris is installed: `make fuzz ARGS='--minutes 10 --target cel'`.
fuzz: $(DEV)
	@$(BIN)/python -m tests.fuzz $(ARGS)

# The real etcd, kube-apiserver, kube-scheduler and kubectl, built once into a cache folder.
envtest:
	@$(PYTHON) tools/envtest/install.py

# The same of the oldest Kubernetes that kubesched works with. Where it cannot be built, for want of
# Go, its tests say so.
envtest-older:
	-@$(PYTHON) tools/envtest/install.py --version v1.36.4

# What kube-scheduler answered for thousands of clusters, and what we answer.
conformance: $(DEV)
	@$(BIN)/python -m tests.conformance $(VECTORS)

# Side by side with kube-scheduler; `make bench ARGS=--decisions` for the engine alone.
bench: $(RUNTIME)
	@$(BIN)/kubesched bench $(ARGS)

# What the Dockerfile describes, built and run without a container engine: needs Debian and root.
image-test: $(DEV) envtest
	$(BIN)/python -m pytest tests/integration/test_image.py --quiet $(ARGS)

# Wheel, sdist and bills of materials of the last commit, and their hashes, in dist/.
dist: $(DEV)
	@$(BIN)/python -m tools.release.dist $(ARGS)

# Builds wheel and sdist twice, under circumstances that differ, and compares.
reproducible: $(DEV)
	@$(BIN)/python -m tools.release.dist --check $(ARGS)

# The release workflow: its syntax and shell (actionlint, built with Go), and what an attacker could use.
lint-release: $(DEV)
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
	$(BIN)/zizmor --offline --pedantic .github/workflows

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
