#!/bin/sh
# The library as its user has it: installed from the build directory $1 to a place of its own, found by CMake and by
# pkg-config, and the example compiled and run both ways. $2 is the compiler.
set -eu
build=$1 compiler=$2
examples=$(cd "$(dirname "$0")/../../examples" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix" # neither package may know where it was installed to
launcher=
! command -v ccache >/dev/null || launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=ccache
# shellcheck disable=SC2086 # one word, or none
cmake -G Ninja -S "$examples" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$compiler" \
  $launcher >"$work/log" 2>&1 && cmake --build "$work/cmake" >>"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }

directory=$(dirname "$(find "$work/prefix" -name spillway.pc)")
export PKG_CONFIG_PATH="$directory${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
standard=c++17
! pkg-config --atleast-version=10.7 rocksdb || standard=c++20 # RocksDB's headers ask for it
# shellcheck disable=SC2046 # flags are words
"$compiler" -std=$standard -Wall -Wextra -Werror "$examples/quickstart.cc" -o "$work/by-pkg-config" \
  $(pkg-config --cflags --libs spillway)

for program in "$work/cmake/quickstart" "$work/by-pkg-config"; do
  rm -rf "$work/db"
  "$program" "$work/db" >"$work/said"
  grep -Eqx '[1-9][0-9]* diverted' "$work/said" || { cat "$work/said" >&2; exit 1; }
done

# Another RocksDB than the one that the library was built for: refused by pkg-config, by CMake and by the headers.
fail() {
  echo "$1" >&2
  exit 1
}
mkdir -p "$work/other/rocksdb"
sed 's/^Version:.*/Version: 6.99.1/' "$(pkg-config --variable=pcfiledir rocksdb)/rocksdb.pc" >"$work/other/rocksdb.pc"
printf '#define ROCKSDB_MAJOR 6\n#define ROCKSDB_MINOR 99\n' >"$work/other/rocksdb/version.h"
PKG_CONFIG_PATH="$work/other:$PKG_CONFIG_PATH"
! pkg-config --exists spillway || fail "pkg-config takes spillway with RocksDB 6.99.1"
! cmake -G Ninja -S "$examples" -B "$work/refused" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" 2>&1 ||
  fail "CMake takes spillway with RocksDB 6.99.1"
tr -s ' \n' ' ' <"$work/log" | grep -q 'cannot be used with 6.99.1; build it again' || fail "$(cat "$work/log")"
! echo '#include <spillway/rocksdb_version.h>' |
  "$compiler" -E -x c++ -I"$work/prefix/include" -isystem "$work/other" - >/dev/null 2>"$work/log" ||
  fail "the headers take RocksDB 6.99"
grep -q 'spillway was built for RocksDB' "$work/log" || fail "$(cat "$work/log")"
