#!/bin/sh
# Builds a RocksDB as a shared library, with db_bench and ldb, into build-rocksdb/VERSION, and keeps it:
#
#   scripts/rocksdb.sh 11.8.1
#   PKG_CONFIG_PATH=$PWD/build-rocksdb/11.8.1/lib/pkgconfig cmake -G Ninja -S . -B build-11.8.1
#
# The source is that of the crate librocksdb-sys, as cargo fetches and verifies it. JOBS: compilers at a time, 2 if not given.
set -eu

version=${1:?"usage: scripts/rocksdb.sh VERSION, such as 11.8.1"}
# The version of the crate that has it.
case "$version" in
  11.8.1) crate=0.19.0 ;;
  10.4.2) crate=0.17.3 ;;
  8.10.0) crate=0.16.0 ;;
  *)
    echo "scripts/rocksdb.sh: no crate is known that has RocksDB $version; known are 8.10.0, 10.4.2 and 11.8.1" >&2
    exit 2
    ;;
esac

cd "$(dirname "$0")/.."
place=$PWD/build-rocksdb/$version
if [ -e "$place/complete" ]; then
  echo "$place"
  exit 0
fi
mkdir -p "$place/crate/src"

# A package that has the crate as its one dependency: cargo checks the file against the registry's index.
cat > "$place/crate/Cargo.toml" <<END
[package]
name = "rocksdb-source"
version = "0.0.0"
edition = "2021"

[dependencies]
librocksdb-sys = { version = "=$crate", default-features = false }
END
: > "$place/crate/src/lib.rs"
(cd "$place/crate" && cargo vendor --quiet vendor > /dev/null)
source=$place/crate/vendor/librocksdb-sys/rocksdb

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
rm -rf "$place/build" "$place/crate"
touch "$place/complete"
echo "$place"
