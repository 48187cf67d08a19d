#!/bin/sh
# The library as a plugin for RocksDB's own build, for programs that link RocksDB statically:
#   scripts/rocksdb_plugin.sh ROCKSDB/plugin/spillway
#   make -C ROCKSDB static_lib ROCKSDB_PLUGINS=spillway ROCKSDB_CXX_STANDARD=c++20
# The directory is a copy and must not exist: RocksDB puts object files beside the sources.
set -eu
[ $# -eq 1 ] || {
  echo "usage: scripts/rocksdb_plugin.sh ROCKSDB/plugin/spillway" >&2
  exit 2
}
[ ! -e "$1" ] || {
  echo "rocksdb_plugin: $1 exists; name a directory that does not." >&2
  exit 2
}
root=$(cd "$(dirname "$0")/.." && pwd)
fragment=$root/native/spill/packaging/rocksdb_plugin
mkdir -p "$1"
cd "$1"

# What needs RocksDB and nothing else, as native/spill/CMakeLists.txt has it: all but the key-value namespaces of a drive.
cp -R "$root/native/base" base
cp -R "$root/native/spill" spill
rm -rf spill/store/kv spill/packaging base/CMakeLists.txt spill/CMakeLists.txt
mv spill/include/spillway spillway
rmdir spill/include
cp "$fragment/CMakeLists.txt" "$fragment/register.cc" .

list() {
  find "$@" | LC_ALL=C sort | tr '\n' ' ' | sed 's/ $//'
}
sources=$(list register.cc base spill -name '*.cc')
headers=$(list spillway -name '*.h')
sed "s|@SOURCES@|$sources|; s|@HEADERS@|$headers|" "$fragment/spillway.mk" >spillway.mk
