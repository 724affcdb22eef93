# What a contributor runs. Every path is relative, so the checkout may lie anywhere, spaces included.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
BIN := .venv/bin

# A virtual environment knows where it was made. Moved or copied, it would go on running the old checkout's code.
$(shell [ ! -e .venv/made-at ] || [ "$$(cat .venv/made-at)" = "$$(pwd -P)" ] || rm -rf .venv build)

NATIVE := CMakeLists.txt $(shell find native -type f -not -path 'native/fuzz/*')
READY := .venv/native.stamp
STUB := src/lanescope/_native/core.pyi

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

venv: .venv/venv.stamp ## create .venv with everything that development needs
.venv/venv.stamp: pyproject.toml tools/make_venv
	@PYTHON="$(PYTHON)" tools/make_venv
	@touch $@

# The editable install knows modules by file: it is renewed when a module appears or goes, not when one is edited.
.venv/modules.txt: .venv/venv.stamp FORCE
	@find src -name '*.py' | LC_ALL=C sort >$@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
FORCE:

native: $(READY) ## build the C++ core (only what changed) and install the package editable
$(READY): .venv/venv.stamp .venv/modules.txt $(NATIVE)
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

# Type checkers read the sources, not the installed package, and need the stub next to them.
$(STUB): $(READY)
	@$(BIN)/python -m nanobind.stubgen --quiet --module lanescope._native.core --output-file $@

demo: $(READY) ## run lanescope on a simulated capture
	@$(BIN)/lanescope demo -o out/demo

test: $(READY) ## the quick tests, the same for everybody; LANESCOPE_CORPUS names real captures; PYTEST adds arguments
	@LANESCOPE_EFFORT=quick $(BIN)/python -u -m pytest -n 2 $(PYTEST)

test-full: $(READY) ## all tests, at random; wants the tools of test-tools and browser-tools; EFFORT=ci tries fewer examples
	@LANESCOPE_EFFORT=$(or $(EFFORT),full) $(BIN)/python -u -m pytest -n 2 $(PYTEST)

hunt: $(READY) ## run the property tests with fresh seeds for MINUTES (10), HUNT_JOBS (1) at a time; finds go to build/hunt
	@PYTEST="$(PYTEST)" $(BIN)/python -u tools/hunt.py $(or $(MINUTES),10)

power: $(READY) ## tell lies of simulated captures and count those that check finds; POWER adds arguments: --seeds 1-30
	@PYTHONPATH=tests $(BIN)/python -m plausibility.power --jobs 2 $(POWER)

compare-rates: $(READY) ## compare simulated runs and print how often that is right; RATES adds arguments: --seeds 200 --each 0.025
	@PYTHONPATH=tests $(BIN)/python -m analysis.compare.rates $(RATES)

path-fuzz: $(READY) ## walk random AIE programs back from their bytes, PROGRAMS (1000) of each kind; report the shares
	@LANESCOPE_EFFORT=full LANESCOPE_PROGRAMS="$(or $(PROGRAMS),1000)" $(BIN)/python -u -m pytest -q \
	    tests/devices/aie/path/test_truth.py

mutate: $(READY) ## change captures field by field and print what is detected; MUTATE adds arguments: --write keeps it
	@PYTHONPATH=tests $(BIN)/python -u tools/mutate.py $(MUTATE)

matrix: $(READY) ## all programs of the Level Zero matrix in all ways; SANITIZE is address or thread, ROWS names some, EVERY=N runs one of N
	@PYTHONPATH=tests $(BIN)/python -m native.matrix rows $(if $(SANITIZE),--sanitize $(SANITIZE)) \
	    $(if $(ROWS),--rows $(ROWS)) $(if $(EVERY),--every $(EVERY))

matrix-sanitized: $(READY) ## the whole matrix under both sanitizers, ROUNDS (all 20) of it; logs in build/matrix; goes on where it was
	@mkdir -p build/matrix
	@failed=0; for round in $(or $(ROUNDS),$$(seq 0 19)); do for sanitize in address thread; do \
	    log=build/matrix/$$sanitize-$$round.log; \
	    built=build/recorder-$$sanitize/recorder/libze_tracing_layer.so.1; \
	    if ! { [ "$$log" -nt "$$built" ] && tail -n 1 "$$log" | grep -q ', 0 failed$$'; }; then \
	        PYTHONPATH=tests $(BIN)/python -m native.matrix rows --sanitize $$sanitize --round $$round $(MATRIX) \
	            >"$$log" 2>&1 || failed=1; \
	    fi; \
	    echo "$$sanitize, round $$round: $$(tail -n 1 "$$log")"; \
	done; done; exit $$failed

matrix-random: $(READY) ## N (10000) random Level Zero programs; SANITIZE as above; MATRIX: --kind NAME, --world NAME, --resets NAME
	@PYTHONPATH=tests $(BIN)/python -m native.matrix random --number $(or $(N),10000) \
	    $(if $(SANITIZE),--sanitize $(SANITIZE)) $(MATRIX)

matrix-mutants: $(READY) ## build the recorder with one thing wrong at a time; fail where no program notices
	@PYTHONPATH=tests $(BIN)/python -m native.matrix mutants

test-tools: .venv/venv.stamp ## fetch the programs that tests drive into .tools
	@tools/fetch_tools node valgrind babeltrace2 mpirun lttng bt2 zsh fish levelzero levelzero-newest lttng-newest sarif cuda probes

browser-tools: .venv/venv.stamp ## fetch a headless browser and a checker of types in scripts into .tools
	@tools/fetch_tools node chromium typescript

lint: $(STUB) ## ruff, mypy, import-linter
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

docs: $(READY) ## build the documentation into docs/_build/html
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --builder html docs docs/_build/html

pages: $(READY) ## run the pages of the documentation, and write into them what their commands print now
	@$(BIN)/python docs/page_runner.py

man: $(READY) ## write the man pages into build/man, from the parsers of the commands
	@$(BIN)/python tools/make_man_pages build/man

bench: $(READY) ## measure all families against their peers; BENCH adds arguments: --quick, --only NAME, --full, --keep
	@$(BIN)/python benchmarks/run.py $(BENCH)

gpu: $(READY) ## run probes, ours and those of others, on this machine's GPU: check, measure, keep captures; GPU adds arguments: --quick, -o FOLDER, --no-keep
	@if $(BIN)/python benchmarks/gpu/driver.py; then for tool in cuda probes flashinfer torch; do tools/fetch_tools $$tool || echo "make gpu: goes on without $$tool" >&2; done; fi
	@python=.tools/probes/bin/python; [ -x $$python ] || python=$(BIN)/python; $$python benchmarks/gpu/run.py $(GPU)

gates: $(READY) ## count instructions, and fail where a start, a decode, a check or a writer takes more than it may
	@$(BIN)/python benchmarks/run.py --check --only gates $(BENCH)

bench-check: $(READY) ## the same, and what a start takes from an installed wheel
	@$(BIN)/python benchmarks/run.py --check --only gates --only startup $(BENCH)

fuzz: $(READY) ## fuzz codecs and readers for MINUTES (10) under sanitizers; FUZZ names some targets; WRITE=--write keeps the figures
	@[ -x .tools/bin/clang++ ] && [ -d .tools/atheris ] || tools/fetch_tools clang atheris
	@nice -n 19 $(BIN)/python -u tools/fuzz.py $(or $(MINUTES),10) $(FUZZ) $(WRITE)

kill-test: $(READY) ## kill -9 recorded programs at 200 random moments; KILLS sets how many
	@LANESCOPE_EFFORT=full LANESCOPE_KILLS=$(or $(KILLS),200) $(BIN)/python -m pytest -q --timeout 0 \
	    tests/devices/levelzero/test_record.py -k killed_program

test-sanitized: $(READY) ## the quick tests over a native core with sanitizers; SANITIZE is address (default) or thread
	@LANESCOPE_EFFORT=quick tools/test_sanitized $(or $(SANITIZE),address) -n 2 $(PYTEST)

mutate-code: $(READY) ## change the code of a ROOM place by place; print changes that no test notices; MUTATE: --sample N, --again, --write
	@$(BIN)/python -u tools/mutate_code.py $(ROOM) $(MUTATE)

sanitize: $(READY) ## run driver, recorder and programs under ASan with UBSan, and under TSan; ROUNDS of each (5)
	@LANESCOPE_EFFORT=full LANESCOPE_SANITIZED=$(or $(ROUNDS),5) $(BIN)/python -m pytest -q --timeout 0 \
	    tests/devices/levelzero/test_record.py -k sanitizers

wheel: .venv/venv.stamp ## build a wheel into dist
	@$(BIN)/python -m pip wheel --quiet --quiet --disable-pip-version-check --no-build-isolation --no-deps \
	    --config-settings build-dir=build/wheel --wheel-dir dist .

wheel-test: ## build sdist and wheel and run the demo without a compiler; PYTHONS names several Pythons
	@tools/wheel_test $(or $(PYTHONS),$(PYTHON))

portable-wheel: .venv/venv.stamp ## build for glibc 2.28, musl and aarch64 with Zig's compiler; auditwheel judges the wheel
	@tools/portable_wheel

news: venv ## put the files of news into CHANGELOG.md
	@$(BIN)/python tools/release.py news

release: venv ## collect the news and write VERSION wherever the package has it; commits and publishes nothing
	@$(BIN)/python tools/release.py version $(or $(VERSION),"")

sbom: wheel ## write what the wheel and its extras bring along to dist/lanescope.cdx.json (CycloneDX)
	@tools/audit sbom

audit: wheel ## ask PyPI for known vulnerabilities of what the wheel and its extras bring along; needs the network
	@tools/audit advisories

clean: ## remove everything that is made here
	rm -rf .venv .tools build dist out docs/_build docs/reference/generated docs/images/made .mypy_cache .ruff_cache .pytest_cache \
	    .import_linter_cache .hypothesis
	rm -f $(STUB)
	find src tests benchmarks docs tools -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: FORCE help venv native demo test test-full hunt power mutate path-fuzz matrix matrix-random matrix-mutants test-tools browser-tools lint docs pages man bench gpu gates bench-check fuzz kill-test test-sanitized mutate-code sanitize wheel wheel-test portable-wheel news release sbom audit clean
