#!/bin/sh
# Builds the native side in build/ and puts what programs use beside the Python package.
#   scripts/native.sh        the executable, the RocksDB plugin, the accelerator for programs as they are
#   scripts/native.sh accelerate  only the last of them
#   scripts/native.sh all    and tests, the fuzz target
#   scripts/native.sh bench  and benchmarks, which the tests do without
#   scripts/native.sh configure  builds nothing: what would be compiled, and how, is in build/compile_commands.json
set -eu
cd "$(dirname "$0")/.."

fail() {
  echo "setup: $*" >&2
  exit 2
}

# A checkout that was moved has a cache that points to the old place.
if [ -f build/CMakeCache.txt ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" build/CMakeCache.txt; then
  rm -rf build
fi
if [ ! -f build/build.ninja ]; then
  log=$(mktemp)
  # Warnings are errors on an integration server alone: a compiler that we have not met may warn of more.
  cmake -G Ninja -S . -B build -DSPILLWAY_BENCH=OFF -DCMAKE_COMPILE_WARNING_AS_ERROR="${CI:-OFF}" >"$log" 2>&1 || {
    cat "$log" >&2
    rm -f "$log"
    fail "cmake could not configure the build; its own message is above."
  }
  rm -f "$log"
fi
if [ "${1:-}" = configure ]; then
  cmake build >/dev/null || fail "cmake could not configure the build; its own message is above."
  exit 0
fi

accelerator="spillway-accelerate spillway-accelerator"
targets="spillway-native rocksdb-spillway $accelerator"
# WiredTiger is an engine of its own licence and may be missing.
has_wiredtiger() { grep -q '^build spillway-engine-wiredtiger: phony' build/build.ninja; }
! has_wiredtiger || targets="$targets spillway-engine-wiredtiger"
case ${1:-} in
  all) targets=all ;;
  accelerate) targets=$accelerator ;;
  bench)
    targets=all
    cmake -S . -B build -DSPILLWAY_BENCH=ON >/dev/null || fail "cmake could not configure the benchmarks."
    ;;
esac
# shellcheck disable=SC2086 # a list of words
cmake --build build --target $targets || fail "the native build failed; the compiler's own message is above."

# Replaced by a new file, never written into: a run that goes on keeps the one it started with.
place() {
  cmp -s "$1" "$3" || { mkdir -p "$(dirname "$3")" && install -m "$2" "$1" "$3"; }
}
for library in libspillway-accelerate.so libspillway-accelerator.so; do
  place "build/native/accelerate/$library" 644 ".venv/lib/$library"
done
[ "${1:-}" != accelerate ] || exit 0
place build/bin/spillway-native 755 .venv/bin/spillway-native
place build/native/plugin/librocksdb-spillway.so 644 .venv/lib/librocksdb-spillway.so
if has_wiredtiger; then
  place build/lib/libspillway-engine-wiredtiger.so 644 .venv/lib/libspillway-engine-wiredtiger.so
fi
