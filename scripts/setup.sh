#!/bin/sh
# Everything from a fresh Debian 12 or Ubuntu 24.04 to .venv/bin/spillway; quick to repeat.
#   scripts/setup.sh        what `make demo` needs
#   scripts/setup.sh accelerate  what `spillway accelerate` needs
#   scripts/setup.sh test   and what the tests and benchmarks need
#   scripts/setup.sh long   and what the tests of `make long` need
#   scripts/setup.sh configure  packages for tests and lint, .venv for both, and a configured build; nothing is built
set -eu
cd "$(dirname "$0")"

case ${1:-} in
  "")
    ./packages.sh build
    ./python.sh
    ./native.sh
    ;;
  accelerate)
    ./packages.sh build
    ./python.sh
    ./native.sh accelerate
    ;;
  test)
    ./packages.sh build test
    ./python.sh dev
    ./native.sh all
    ;;
  long)
    ./packages.sh build test
    ./python.sh long
    ./native.sh all
    ;;
  configure)
    # pip computes while apt waits for mirrors and disks. Where it fails, what needs .venv tries again and says why.
    venv=
    if python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      ./python.sh dev &
      venv=$!
    fi
    failed=0
    ./packages.sh build test lint headers || failed=$?
    [ -z "$venv" ] || wait "$venv" || true
    [ "$failed" = 0 ] || exit "$failed"
    ./native.sh configure
    ;;
  *)
    echo "setup: '$1' is not a purpose; take none, accelerate, test, long, or configure." >&2
    exit 2
    ;;
esac
