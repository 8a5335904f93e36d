# Needs Python 3.11 or later, a C++17 compiler and make. Everything else comes
# into .venv from the Python package index.
#
#   make setup    sets up the environment and builds
#   make demo     the same, and runs `embedra demo`
#   make test     the same, and runs the native tests, then pytest
#   make lint     what must pass before a change is merged
#   make native-test SANITIZE=address,undefined
#   make native-test SANITIZE=thread
#   make clean    removes what was built, and the environment

PYTHON ?= python3
JOBS ?= 2
SANITIZE ?=
DEMO_FLAGS ?=
PYTEST_FLAGS ?= -n auto --dist loadfile

VENV := .venv
BIN := $(VENV)/bin
STAMPS := .make
comma := ,
NATIVE_BUILD := build/tests$(if $(SANITIZE),-$(subst $(comma),-,$(SANITIZE)))
NATIVE_SOURCES := CMakeLists.txt $(shell find csrc third_party -type f)
CXX_SOURCES := $(shell find csrc -name '*.cc' -o -name '*.h' -o -name '*.inc')

.PHONY: setup demo test native-test lint format clean
.DELETE_ON_ERROR:

setup: $(STAMPS)/package

demo: $(STAMPS)/package
	$(BIN)/embedra demo $(DEMO_FLAGS)

test: $(STAMPS)/package native-test
	$(BIN)/python -m pytest $(PYTEST_FLAGS)

# The core alone: no TensorFlow, so this also builds under sanitizers.
native-test: $(STAMPS)/requirements
	$(BIN)/cmake -S csrc/embedra/core -B $(NATIVE_BUILD) -G Ninja \
	  -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) \
	  -DEMBEDRA_BUILD_TESTS=ON -DEMBEDRA_SANITIZE=$(SANITIZE)
	$(BIN)/cmake --build $(NATIVE_BUILD) --parallel $(JOBS)
	$(BIN)/ctest --test-dir $(NATIVE_BUILD) --output-on-failure

lint: $(STAMPS)/package
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(CXX_SOURCES)

format: $(STAMPS)/requirements
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CXX_SOURCES)

clean:
	rm -rf build $(VENV) $(STAMPS)

# The lock names every package, so pip has nothing to resolve. That also lets
# tf_keras, which asks for `tensorflow`, sit on `tensorflow-cpu`.
$(STAMPS)/requirements: requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-deps -r requirements.lock
	@mkdir -p $(STAMPS) && touch $@

# An editable installation: Python from src/, the op library from build/wheel,
# where a second build compiles only what changed.
$(STAMPS)/package: $(STAMPS)/requirements pyproject.toml $(NATIVE_SOURCES)
	PATH="$(abspath $(BIN)):$$PATH" CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) \
	  $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation \
	  --editable .
	@mkdir -p $(STAMPS) && touch $@
