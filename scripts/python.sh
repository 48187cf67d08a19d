#!/bin/sh
# Makes .venv and installs the Python package into it, in place.
#   scripts/python.sh        what a run needs
#   scripts/python.sh dev    and what tests and lint need
#   scripts/python.sh long   and what the tests of `make long` need
# Does nothing, quickly, while pyproject.toml, the interpreter and the directory are those of the last time.
set -eu
cd "$(dirname "$0")/.."

extras=${1:-}
stamp=.venv/installed

fail() {
  echo "setup: $*" >&2
  exit 2
}

# An interpreter that is new enough and can make a virtual environment with pip.
find_python() {
  for candidate in python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      echo "$candidate"
      return
    fi
  done
}

if [ -x .venv/bin/python ] && [ -f $stamp ]; then
  # A checkout that was moved has scripts that point to the old place.
  key="$(cksum <pyproject.toml) $(.venv/bin/python -V 2>&1 || true) $PWD"
  case "$(cat $stamp)" in
    "$key long") exit 0 ;;
    "$key dev") [ "$extras" = long ] || exit 0 ;;
    "$key ") [ -n "$extras" ] || exit 0 ;;
    *" $PWD "*) ;;
    *) rm -rf .venv ;;
  esac
fi

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
  python=$(find_python)
  if [ -z "$python" ]; then
    fail "Python 3.11 or newer with venv is needed and this is $(python3 -V 2>&1 || true);" \
      "install python3.11 and python3.11-venv, or use Debian 12, Ubuntu 24.04 or later."
  fi
  rm -rf .venv
  "$python" -m venv .venv
fi

echo "Installing the Python package into .venv"
rm -f $stamp
case $extras in
  "") target=. ;;
  long) target=".[dev,ray]" ;;
  *) target=".[$extras]" ;;
esac
.venv/bin/python -m pip install --quiet --disable-pip-version-check --config-settings=wheel.cmake=false --editable "$target" ||
  fail "pip could not install the package; its own message is above."
echo "$(cksum <pyproject.toml) $(.venv/bin/python -V 2>&1) $PWD $extras" >$stamp
