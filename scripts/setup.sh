#!/bin/sh
# Everything from a fresh Debian 12 or Ubuntu 24.04 to .venv/bin/spillway; quick to repeat.
#   scripts/setup.sh        what `make demo` needs
#   scripts/setup.sh accelerate  what `spillway accelerate` needs
#   scripts/setup.sh test   and what the tests and benchmarks need
#   scripts/setup.sh long   and what the tests of `make long` need
#   scripts/setup.sh configure  packages for tests and lint, and a configured build; neither .venv nor anything built
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
    ./packages.sh build test lint headers
    ./native.sh configure
    ;;
  *)
    echo "setup: '$1' is not a purpose; take none, accelerate, test, long, or configure." >&2
    exit 2
    ;;
esac
