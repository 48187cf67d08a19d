#!/bin/sh
# Builds a RocksDB as a shared library, with db_bench and ldb, into build-rocksdb/VERSION, and keeps it:
#
#   scripts/rocksdb.sh 11.8.1
#   PKG_CONFIG_PATH=$PWD/build-rocksdb/11.8.1/lib/pkgconfig cmake -G Ninja -S . -B build-11.8.1
#
# JOBS: compilers at a time, 2 if not given.
set -eu

version=${1:?"usage: scripts/rocksdb.sh VERSION, such as 11.8.1"}
cd "$(dirname "$0")/.."
place=$PWD/build-rocksdb/$version
if [ -e "$place/complete" ]; then
  echo "$place"
  exit 0
fi
source=$place/source
rm -rf "$source" "$source.crate"
mkdir -p "$place"
scripts/rocksdb_source.sh "$version" "$source"

cmake -G Ninja -S "$source" -B "$place/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$place" \
  -DCMAKE_INSTALL_LIBDIR=lib -DROCKSDB_BUILD_SHARED=ON -DWITH_TESTS=OFF -DWITH_TOOLS=ON -DWITH_CORE_TOOLS=ON \
  -DWITH_BENCHMARK_TOOLS=ON -DWITH_GFLAGS=ON -DWITH_SNAPPY=ON -DWITH_LZ4=ON -DWITH_ZSTD=ON -DUSE_RTTI=ON -DPORTABLE=1 \
  -DFAIL_ON_WARNINGS=OFF
# Only these: the archive of RocksDB's own build is neither built nor installed.
cmake --build "$place/build" -j "${JOBS:-2}" --target rocksdb-shared db_bench ldb sst_dump
mkdir -p "$place/bin" "$place/include" "$place/lib/pkgconfig"
cp -R "$source/include/rocksdb" "$place/include/"
cp -P "$place/build"/librocksdb.so* "$place/lib/"
cp "$place/build/rocksdb.pc" "$place/lib/pkgconfig/"
for program in db_bench ldb sst_dump; do
  cp "$(find "$place/build" -name "$program" -type f | head -n 1)" "$place/bin/"
done
rm -rf "$place/build" "$source"
touch "$place/complete"
echo "$place"
