#!/bin/sh
# Builds a newer WiredTiger than the system's, and the engine's module for it, in build-wiredtiger/.
# Its source is the sdist on PyPI, under the GNU General Public License, version 2 or 3.
set -eu
cd "$(dirname "$0")/.."
version=11.3.1
place=$PWD/build-wiredtiger

fail() {
  echo "wiredtiger: $*" >&2
  exit 2
}

if [ ! -f "$place/lib/libwiredtiger.so" ]; then
  rm -rf "$place/source" "$place/build"
  mkdir -p "$place/source" "$place/include" "$place/lib"
  .venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
    --dest "$place/source" "wiredtiger==$version" || fail "pip could not fetch the sdist wiredtiger==$version."
  tar -xzf "$place/source/wiredtiger-$version.tar.gz" -C "$place/source"
  cmake -G Ninja -S "$place/source/wiredtiger-$version" -B "$place/build" -DCMAKE_BUILD_TYPE=Release -DENABLE_PYTHON=0 \
    -DENABLE_STATIC=0 -DENABLE_STRICT=0 -DENABLE_LZ4=0 -DENABLE_SNAPPY=0 -DENABLE_ZLIB=0 -DENABLE_ZSTD=0 >"$place/cmake.log" 2>&1 ||
    fail "WiredTiger could not be configured; $place/cmake.log says why."
  cmake --build "$place/build" --target libwiredtiger.so || fail "WiredTiger could not be built; its own message is above."
  cp "$place/build/include/wiredtiger.h" "$place/include/"
  cp -P "$place/build/libwiredtiger.so"* "$place/lib/"
fi
scripts/native.sh
cmake -S . -B build -DSPILLWAY_WIREDTIGER="$place" >/dev/null || fail "cmake could not configure the build."
cmake --build build --target second-wiredtiger || fail "the engine's module could not be built; the compiler's message is above."
echo "WiredTiger $version: SPILLWAY_ENGINES=build-wiredtiger/lib picks it for a command."
