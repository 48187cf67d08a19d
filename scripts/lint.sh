#!/bin/sh
# clang-format, ruff, mypy, clang's check of locks, clang-tidy. All are run; the exit code is 1 when any found something.
#   scripts/lint.sh            all of it
#   scripts/lint.sh changed    clang-tidy over what changed last, LINT_FILES (3) sources at most (docs/decisions/0034)
# With IS_CONFIGURED, packages and the configured build are there: lint then touches nothing that a build beside it makes.
set -eu
cd "$(dirname "$0")/.."
if [ -z "${IS_CONFIGURED:-}" ]; then
  scripts/packages.sh build lint
  # The units that clang reads are those of the ordinary build.
  scripts/native.sh configure
fi
scripts/python.sh dev

found=0
step() {
  echo "+ $*"
  "$@" || found=1
}

# Of the branch since it left origin/main; on main itself of the newest commits. A header stands for its own source.
changed_sources() {
  base=$(git merge-base HEAD "${LINT_BASE:-origin/main}" 2>/dev/null || true)
  range=HEAD
  [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ] || range=$base..HEAD
  {
    git diff --name-only HEAD -- 'native/*.cc' 'native/*.h'
    git log --format= --name-only "$range" -- 'native/*.cc' 'native/*.h'
  } | sed 's/\.h$/.cc/' | awk '!seen[$0]++' | while read -r source; do
    [ ! -f "$source" ] || echo "$source"
  done | head -n "${LINT_FILES:-3}"
}

sources=$(git ls-files --cached --others --exclude-standard '*.cc' '*.h')
# shellcheck disable=SC2086 # a list of words
step clang-format --dry-run -Werror $sources
step .venv/bin/python -m ruff check spillway tests/python scripts bench examples/concurrency
step .venv/bin/python -m ruff format --check spillway tests/python scripts bench examples/concurrency
step .venv/bin/python -m mypy  # what is checked, and how strictly: pyproject.toml
# A build by clang is this check, too.
if [ -z "${IS_CONFIGURED:-}" ] || ! grep -q '^CMAKE_CXX_COMPILER:.*clang' build/CMakeCache.txt; then
  step .venv/bin/python scripts/thread_safety.py
fi

# A configuration of its own: the compiler launcher of the ordinary build would stand where clang-tidy looks for the compiler,
# and a file that is compiled as part of another would not be looked at.
cmake -G Ninja -S . -B build-lint -DCCACHE_PROGRAM=OFF -DSPILLWAY_ONE_UNIT=OFF -DSPILLWAY_PRECOMPILED=OFF >/dev/null
case ${1:-} in
  "") step run-clang-tidy -quiet -p build-lint -j "$(nproc)" "$PWD/native/.*\.cc$" ;;
  changed)
    changed=$(changed_sources)
    # shellcheck disable=SC2086 # a list of words
    [ -z "$changed" ] || step run-clang-tidy -quiet -p build-lint -j "$(nproc)" $changed
    ;;
  *)
    echo "lint: '$1' is not a choice; take none, or changed." >&2
    exit 2
    ;;
esac
exit $found
