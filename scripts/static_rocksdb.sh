#!/bin/sh
# Builds a RocksDB as a static library by its own build with ROCKSDB_PLUGINS=spillway, links a program with what it
# installs, and runs it. As long as a build of RocksDB.
#
#   scripts/static_rocksdb.sh 11.8.1
#
# In build-static/VERSION. JOBS: compilers at a time, 2 if not given.
set -eu
version=${1:?"usage: scripts/static_rocksdb.sh VERSION, such as 11.8.1"}
cd "$(dirname "$0")/.."
place=$PWD/build-static/$version
fail() {
  echo "static: $1" >&2
  exit 1
}

rm -rf "$place/source" "$place/source.crate" "$place/installed" "$place/db"
mkdir -p "$place"
scripts/rocksdb_source.sh "$version" "$place/source"
scripts/rocksdb_plugin.sh "$place/source/plugin/spillway"
# Without optimization, to be quick, and without run-time type information, as RocksDB's release builds are.
cmake -G Ninja -S "$place/source" -B "$place/build" -DROCKSDB_PLUGINS=spillway -DCMAKE_CXX_STANDARD=20 \
  -DCMAKE_BUILD_TYPE=Release '-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG' -DCMAKE_INSTALL_PREFIX="$place/installed" \
  -DCMAKE_INSTALL_LIBDIR=lib -DROCKSDB_BUILD_SHARED=OFF -DWITH_TESTS=OFF -DWITH_TOOLS=OFF -DWITH_CORE_TOOLS=OFF \
  -DWITH_BENCHMARK_TOOLS=OFF -DWITH_GFLAGS=OFF -DUSE_RTTI=OFF -DPORTABLE=1 -DFAIL_ON_WARNINGS=OFF
cmake --build "$place/build" -j "${JOBS:-2}"
cmake --install "$place/build" >/dev/null

program=$place/quickstart
c++ -std=c++20 examples/quickstart.cc -I "$place/installed/include" -I "$place/installed/include/rocksdb/plugin/spillway" \
  "$place/installed/lib/librocksdb.a" -pthread -ldl -o "$program"
! ldd "$program" | grep librocksdb || fail "the program loads a shared RocksDB"
"$program" "$place/db" | tee "$place/said"
grep -Eqx '[1-9][0-9]* diverted' "$place/said" || fail "nothing was diverted"
echo "static: a program with RocksDB $version and Spillway in one static library diverts writes"
