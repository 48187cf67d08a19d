# Each recipe is made of lines one could type. Set-up is part of every target and quick to repeat.
.DEFAULT_GOAL := help
.PHONY: help demo accelerate test long readme bench advice lint sanitize fuzz flips crash metamorphic barriers compat pip static docs compared concurrency wiredtiger clean

FUZZ_SECONDS ?= 600
CRASH_TIMES ?= 20
CRASH_SECONDS ?=
METAMORPHIC_SECONDS ?= 3600
JOBS ?= $(shell nproc)
# One more each than there are cores: many tests wait for drives in real time. With two more of Python's none is done earlier.
CTEST_JOBS ?= $(shell expr $(JOBS) + 1)
PYTEST_JOBS ?= $(shell expr $(JOBS) + 1)
# Test processes, and the commands that tests start, read each other's compiled modules.
unexport PYTHONDONTWRITEBYTECODE

help:
	@sed -n 's/^#: //p' Makefile

#: make demo      RocksDB, ADOC, flow control and Spillway on an emulated, steady drive, and the report on them
demo:
	@scripts/setup.sh
	@scripts/demo.sh

#: make accelerate  `spillway accelerate`, which runs RocksDB programs as they are with the accelerator
accelerate:
	@scripts/setup.sh accelerate

#: make test      the tests: native, half a minute of fuzzing, and beside them Python, whose output follows
test:
	@scripts/setup.sh test
	@.venv/bin/python scripts/together.py \
	  'ctest --test-dir build --output-on-failure --label-exclude "^long$$" --parallel $(CTEST_JOBS)' \
	  '.venv/bin/python -m pytest --numprocesses $(PYTEST_JOBS) --dist loadfile --no-loadscope-reorder'

#: make long      the native tests with those of ten seconds and more that `make test` leaves out, then Python's long ones
long:
	@scripts/setup.sh long
	SPILLWAY_LONG=1 ctest --test-dir build --output-on-failure --parallel $(JOBS)
	.venv/bin/python -m pytest --numprocesses $(JOBS) --dist loadfile -m long

#: make readme    every command of README.md as it is written, those of minutes too
readme:
	@scripts/setup.sh test
	.venv/bin/python -m pytest -m 'long or not long' tests/python/test_readme.py

#: make bench     every benchmark; results with their commands go to runs/bench/
bench:
	@scripts/setup.sh test
	@scripts/native.sh bench
	@scripts/packages.sh bench
	.venv/bin/python scripts/bench.py

#: make advice    what `spillway advise` advises beside what was measured, in 24 cases; an hour, goes on where it was ended
advice:
	@scripts/setup.sh
	.venv/bin/python scripts/bench.py advise_grid

#: make lint      clang-format, ruff, mypy, clang's check of locks, clang-tidy; some minutes
lint:
	scripts/lint.sh

#: make sanitize  the native tests under the address, undefined behaviour and thread sanitizers
sanitize:
	@scripts/packages.sh build
	scripts/sanitize.sh address,undefined build-asan
	scripts/sanitize.sh thread build-tsan

#: make fuzz      guided commands against the drive model for FUZZ_SECONDS (600), with clang
fuzz:
	scripts/fuzz.sh $(FUZZ_SECONDS)

#: make flips     10,000 bytes changed at random in the files of spill stores: an error or the right answer
flips:
	@scripts/setup.sh test
	SPILLWAY_FLIPS=10000 build/tests/native/test_spill --gtest_filter='*SpillFlips*'

#: make crash     kills and losses of power: CRASH_TIMES (20) times as many as in make test, and other ones;
#:                or for CRASH_SECONDS, one seed after the other
crash:
	@scripts/setup.sh test
	CRASH_TIMES=$(CRASH_TIMES) CRASH_SECONDS=$(CRASH_SECONDS) scripts/crash.sh

#: make barriers  takes each sync, gate and check of an order out of the accelerator: which tests notice; some hours
barriers:
	@scripts/setup.sh test
	.venv/bin/python scripts/barriers.py

#: make metamorphic  random operations against plain RocksDB and its rules for METAMORPHIC_SECONDS (3600)
metamorphic:
	@scripts/setup.sh test
	SPILLWAY_METAMORPHIC_SECONDS=$(METAMORPHIC_SECONDS) build/tests/native/test_spill --gtest_filter='SpillMetamorphic.*'

#: make compat    builds and tests with RocksDB 7.8.3, 9.10.0 (in a Debian 13 made by debootstrap) and 11.8.1; two hours
compat:
	@scripts/setup.sh test
	.venv/bin/python scripts/compat.py

#: make pip       `pip install .` into a clean virtual environment, and each part used from there; as long as a build
pip:
	@scripts/setup.sh test
	scripts/pip_install.sh

#: make static    RocksDB 11.8.1 by its own build with ROCKSDB_PLUGINS=spillway, and a program on it; as long as its build
static:
	@scripts/packages.sh build headers
	scripts/static_rocksdb.sh 11.8.1

#: make docs      docs/COMMANDS.md from the commands' own help, docs/REPRODUCED.md from the papers' data, and the figures
#:                of recorded runs in README.md and docs/ from runs/
docs:
	@scripts/setup.sh
	.venv/bin/python scripts/docs.py
	.venv/bin/python scripts/figures.py

#: make compared  docs/COMPARED.md: every NAND preset profiled, and the models held against it; some minutes
compared:
	@scripts/setup.sh
	.venv/bin/python scripts/compared.py

#: make concurrency  runs/concurrency/: searches, look-ups, a sort, a join and a tuned pool on three presets; some minutes
concurrency:
	@scripts/setup.sh
	.venv/bin/python scripts/concurrency.py

#: make wiredtiger  WiredTiger 11.3.1 beside the system's, in build-wiredtiger/; some minutes
wiredtiger:
	@scripts/setup.sh
	scripts/wiredtiger.sh

#: make clean     removes what the targets made; runs and presets stay
clean:
	rm -rf build build-asan build-tsan build-lint build-fuzz build-barriers build-compat build-rocksdb build-wiredtiger .venv
