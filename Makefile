# Everything happens in .venv; PYTHON may name another interpreter (3.10 or newer).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Every process that a test or a bench starts would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo dev test soak check bench docs golden-update clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.developed: pyproject.toml $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/.installed  ## materialize the example project through Dagster and print what landed
	@$(BIN)/python example_project/demo.py

dev: $(VENV)/.developed  ## dagster dev on the example project; its runs stay in .dagster_home
	@mkdir -p .dagster_home && cp example_project/dagster.yaml .dagster_home/
	DAGSTER_HOME="$${DAGSTER_HOME:-$(CURDIR)/.dagster_home}" $(BIN)/dagster dev

test: $(VENV)/.developed  ## every test that needs neither network nor services
	$(BIN)/python -m pytest

soak: $(VENV)/.developed  ## 50,000 random sequences of faults and kills, from a new seed each time
	PZ_SEQUENCES=$${PZ_SEQUENCES:-50000} PZ_SEED=$${PZ_SEED:-$$(date +%s)} \
		$(BIN)/python -m pytest -n auto --dist load tests/resume

check: $(VENV)/.developed  ## format, lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 0 tests/contracts/test_imports.py tests/contracts/test_file_size.py

docs: $(VENV)/.developed  ## regenerate the generated reference pages
	$(BIN)/python docs/generate_error_codes.py
	$(BIN)/python docs/generate_cli.py
	$(BIN)/python docs/generate_schemas.py
	$(BIN)/python docs/generate_project_files.py
	$(BIN)/python docs/generate_behaviour_list.py

golden-update: $(VENV)/.developed  ## rewrite golden files; the commit says why each line moved
	$(BIN)/python -m pytest -n 0 --golden-update

bench: $(VENV)/.developed  ## speed and size against raw DuckDB; never part of the tests
	$(BIN)/python bench/run.py

clean:
	rm -rf $(VENV) build dist *.egg-info
