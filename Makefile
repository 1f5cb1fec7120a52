# The front door. `make help` lists what there is; scripts/setup says what it installs and where.

BUILD := build
VENV := .venv
VENV_PYTHON := $(VENV)/bin/python
JOBS := $(shell nproc)
# Tests wait for the programs that they start: one worker more than there are cores.
WORKERS := -n $(shell expr $(JOBS) + 1) --dist loadfile --no-loadscope-reorder
CTEST := ctest --output-on-failure --no-tests=error -j$(JOBS)
# Looked for when it is used: on a new machine set-up installs it first.
LAUNCHER = $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
# An object is the same in every build folder of a clone: the wheel's come out of the cache.
export CCACHE_NOHASHDIR := 1
export CCACHE_BASEDIR := $(CURDIR)
# Else every program that a test starts compiles the package again, and every worker the tests.
unexport PYTHONDONTWRITEBYTECODE
CONFIGURE = cmake -S . -G Ninja $(LAUNCHER)

# That of .venv where the system's is none or too old (scripts/setup web).
NODE = PATH="$(CURDIR)/$(VENV)/bin:$$PATH" node

.DEFAULT_GOAL := all
.PHONY: demo-torch wheel test-wheels tarball release container all command setup demo test test-all test-fresh test-pythons gpu-test bench accuracy-megatron fuzz fmt lint clean distclean help
.PHONY: bench-web sanitizers fuzz-smoke fuzz-corpus docs test-allocator test-tensorflows leak-table leak-shapes troubles host-troubles accuracy

all: command ## set up, build, and put the command and the package in .venv
	@ninja -C $(BUILD) _native
	@install -C -m 755 $(BUILD)/python/_native*.so python/gpumemprof/

# What records and explains, without the module that the package analyses with. The command's line tables, most of
# its size, lie beside it as gpumemprof.debug.
command: setup
	@test -f $(BUILD)/build.ninja || $(CONFIGURE) -B $(BUILD) >$(BUILD)/configure.log || \
	  { cat $(BUILD)/configure.log; exit 1; }
	@ninja -C $(BUILD) gpumemprof shell_files gpumemprof_probe gpumemprof_cuda gpumemprof_hip gpumemprof_level_zero gpumemprof_host _marks
	@mkdir -p $(VENV)/lib
	@[ $(VENV)/bin/gpumemprof -nt $(BUILD)/gpumemprof ] || { \
	  objcopy --only-keep-debug $(BUILD)/gpumemprof $(VENV)/bin/gpumemprof.debug && \
	  objcopy --strip-debug --add-gnu-debuglink=$(VENV)/bin/gpumemprof.debug $(BUILD)/gpumemprof $(VENV)/bin/gpumemprof.new && \
	  mv $(VENV)/bin/gpumemprof.new $(VENV)/bin/gpumemprof; }
	@ln -sf gpumemprof $(VENV)/bin/tfmemprof
	@mkdir -p $(VENV)/share && cp -ru $(BUILD)/share/. $(VENV)/share/
	@install -C -m 755 $(BUILD)/src/probe/libgpumemprof_probe.so $(VENV)/lib/
	@install -C -m 755 $(patsubst %,$(BUILD)/src/driver_proxy/libgpumemprof_%.so,cuda hip level_zero) $(VENV)/lib/
	@install -C -m 755 $(BUILD)/src/host_blocks/libgpumemprof_host.so $(VENV)/lib/
	@install -C -m 755 $(BUILD)/python/_marks*.so python/gpumemprof/
	@$(VENV_PYTHON) scripts/link_package.py python

setup:
	@mkdir -p $(BUILD)
	@scripts/setup build venv python web

demo: setup ## record a real training run and explain it
	@$(MAKE) --no-print-directory -j2 command demo-torch  # one is fetched while the other is compiled
	@scripts/demo

demo-torch: setup
	@scripts/demo torch

test: all ## build and pass the tests (the slow ones apart)
	@scripts/setup tests
	@ninja -C $(BUILD)
	$(CTEST) --test-dir $(BUILD)
	@$(NODE) --test web/test/unit/*.test.mjs >$(BUILD)/page-tests.log || { cat $(BUILD)/page-tests.log; exit 1; }
	$(VENV_PYTHON) -m pytest $(WORKERS) -m "not slow and not gpu" tests bench

test-all: all ## everything that needs no GPU: slow tests, sanitizers, fuzzing, Debian's PyTorch 1.13, other TensorFlows
	@scripts/setup tests
	@ninja -C $(BUILD)
	$(CTEST) --test-dir $(BUILD)
	$(MAKE) sanitizers fuzz-smoke
	scripts/test-debian-torch
	scripts/test-tensorflows
	@scripts/setup browser live shells frames exported optimizers engines accuracy web-tests
	$(NODE) --test web/test/unit/*.test.mjs web/test/browser/*.test.mjs
	scripts/test-integrations
	$(VENV_PYTHON) -m pytest $(WORKERS) -m "not gpu" tests bench

sanitizers: setup ## the unit tests under address+undefined and under thread
	@for kind in address,undefined thread; do \
	  dir=$(BUILD)-`echo $$kind | tr , -`; echo "sanitizers: $$kind"; \
	  $(CONFIGURE) -B $$dir -DGPUMEMPROF_SANITIZE=$$kind -DGPUMEMPROF_BENCH=OFF \
	    -DCMAKE_BUILD_TYPE=Sanitizers -DCMAKE_CXX_FLAGS_SANITIZERS='-O1 -g1' >/dev/null && \
	  ninja -C $$dir --quiet unit_tests && $(CTEST) --test-dir $$dir || exit 1; \
	done

fuzz-smoke: ## every fuzz target for 20 seconds over its corpus
	@scripts/fuzz 20

fuzz-corpus: ## every fuzz target once over its corpus, without clang
	@scripts/fuzz corpus

fuzz: ## every fuzz target for 10 minutes
	@scripts/fuzz 600

wheel: ## one wheel for glibc 2.28 and newer and CPython 3.9 to 3.14, in build/wheel/dist; ARCHS="x86_64 aarch64"
	@scripts/wheel $(ARCHS)

release: ## all that is published, with SHA256SUMS, in build/release; ARCHS="x86_64 aarch64"
	@scripts/release $(ARCHS)

tarball: command ## the command without the Python package, in build/dist; needs the glibc of this system
	@$(VENV_PYTHON) scripts/tarball.py $(BUILD) $(shell uname -m) $(BUILD)/dist

container: ## the image of deploy/container, from the tarballs of make release or make tarball; ARCHS="x86_64 aarch64"
	@scripts/container $(ARCHS)

test-wheels: ## install that wheel on Debian 11 to 13 and Ubuntu 22.04, 24.04 in bare roots, record, analyze, show the page
	@scripts/test-wheels

test-pythons: all ## the recording and line tracer tests on every Python found here, one without a GIL, Debian 13 (3.13) and sid (3.14)
	scripts/test-pythons

test-fresh: ## make demo as a newcomer has it: in a root of Debian 12 with git and make alone
	scripts/test-fresh

test-tensorflows: all ## the recording tests with TensorFlow's CUDA build, on the CPU, and with 2.16
	scripts/test-tensorflows

test-allocator: setup ## the simulated allocator against PyTorch's own, release by release
	@test -f $(BUILD)/build.ninja || $(CONFIGURE) -B $(BUILD) >$(BUILD)/configure.log
	@ninja -C $(BUILD) simulate_allocator gpumemprof gpumemprof_probe
	$(VENV_PYTHON) tests/reference_allocator/run.py $(BUILD)/simulate_allocator $(BUILD)/reference_allocator
	$(VENV_PYTHON) tests/reference_allocator/recorded.py $(BUILD)/gpumemprof $(BUILD)/reference_allocator

gpu-test: all ## the recording tests on this machine's GPU; one table, and into OUT=folder what was recorded
	@scripts/setup tests
	$(VENV_PYTHON) -m pytest -m gpu $(if $(OUT),--basetemp=$(OUT)/recordings) tests/gpu

bench: all ## measure, and write docs/benchmarks.md
	@scripts/setup bench
	@ninja -C $(BUILD)
	$(VENV_PYTHON) bench/run.py

bench-web: all ## how fast the page opens, answers and moves, in Chromium
	@scripts/setup bench web-tests
	@ninja -C $(BUILD) make_recording
	$(VENV_PYTHON) bench/run.py --only page

accuracy: all ## how well peaks are predicted, on a table of measured ones; writes docs/accuracy.md (half an hour)
	@scripts/setup accuracy
	@ninja -C $(BUILD) estimate_traces
	$(BUILD)/venvs/accuracy/bin/python bench/accuracy/run.py --build $(BUILD) $(if $(MODELS),--models $(MODELS))

accuracy-megatron: all ## the closed form against Megatron-LM's reference values; writes docs/accuracy-megatron.md
	@scripts/setup tests
	$(VENV_PYTHON) bench/accuracy_megatron.py

leak-table: all ## how many leaks of the test set are found, on five seeds (an hour)
	PYTHONPATH=tests $(VENV_PYTHON) -m leaks.table --longer --peer

leak-shapes: all ## what is told of 300 ordinary programs and of 300 that leak, on two seeds (ten minutes)
	PYTHONPATH=tests $(VENV_PYTHON) -m leaks.shapes.table --seeds 902,903

troubles: all ## what is told of programs with and without troubles of CUDA and pinned memory, run by PyTorch's own allocators (five minutes)
	$(VENV_PYTHON) tests/reference_allocator/trouble_score.py $(BUILD)/gpumemprof $(BUILD)/reference_allocator --seeds 40 --first-seed 3000

host-troubles: all ## what is told of recorded programs with and without troubles of the host, of NCCL and of loading weights (half an hour)
	@ninja -C $(BUILD)
	PYTHONPATH=tests $(VENV_PYTHON) -m troubles.table --first-seed 100 --seeds 13

docs: setup ## build the documentation's site in build/site
	@scripts/docs

SOURCES = git ls-files -co --exclude-standard 'src/*.cc' 'src/*.h' 'include/*.h' 'fuzz/*.cc' 'bench/*.cc'
fmt: ## format the C++ sources
	@scripts/setup clang
	$(SOURCES) | xargs clang-format-19 -i

lint: all ## clang-tidy over the sources, the layer and style tests
	@scripts/setup clang tests
	@$(CONFIGURE) -B $(BUILD)-lint -DGPUMEMPROF_UNITY_FILES=0 >/dev/null
	$(SOURCES) | grep '^src/.*\.cc$$' | xargs -P $(JOBS) -n 8 clang-tidy-19 -p $(BUILD)-lint
	$(VENV_PYTHON) -m pytest -q tests/layers_test.py tests/style_test.py

clean: ## remove what was built (the roots of other systems stay)
	@find $(BUILD) -mindepth 1 -maxdepth 1 ! -name roots -exec rm -rf {} + 2>/dev/null || true
	@rm -f python/gpumemprof/_native*.so python/gpumemprof/_marks*.so
	@rm -rf $(BUILD)-wheel $(BUILD)-address-undefined $(BUILD)-thread $(BUILD)-fuzz $(BUILD)-fuzz-corpus $(BUILD)-lint demo.gpumemprof report.html

distclean: clean ## also remove .venv and the roots
	@rm -rf $(BUILD) $(VENV)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile
