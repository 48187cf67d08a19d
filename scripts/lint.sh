#!/bin/sh
# clang-format, clang-tidy, ruff, mypy. All are run; the exit code is 1 when any of them found something.
set -eu
cd "$(dirname "$0")/.."
scripts/packages.sh build lint

found=0
step() {
  echo "+ $*"
  "$@" || found=1
}

sources=$(git ls-files --cached --others --exclude-standard '*.cc' '*.h')
# shellcheck disable=SC2086 # a list of words
step clang-format --dry-run -Werror $sources

# A configuration of its own: the compiler launcher of the ordinary build would stand where clang-tidy looks for the compiler,
# and a file that is compiled as part of another would not be looked at.
cmake -G Ninja -S . -B build-lint -DCCACHE_PROGRAM=OFF -DSPILLWAY_ONE_UNIT=OFF -DSPILLWAY_PRECOMPILED=OFF >/dev/null
step run-clang-tidy -quiet -p build-lint -j "$(nproc)" "$PWD/native/.*\.cc$"

step .venv/bin/python -m ruff check spillway tests/python scripts bench
step .venv/bin/python -m ruff format --check spillway tests/python scripts bench
step .venv/bin/python -m mypy  # what is checked, and how strictly: pyproject.toml
exit $found
