#!/bin/sh
# Compiles what includes RocksDB's headers with those of another version, without linking:
#
#   scripts/headers.sh build-rocksdb/11.8.1/include
#
# The directory has rocksdb/ and nothing else that the system's compiler would take. Exit code 1: a source does not compile.
set -eu

headers=${1:?"usage: scripts/headers.sh DIRECTORY, which has rocksdb/"}
if [ ! -e "$headers/rocksdb/version.h" ]; then
  echo "scripts/headers.sh: $headers has no rocksdb/version.h" >&2
  exit 2
fi
headers=$(cd "$headers" && pwd)
cd "$(dirname "$0")/.."
find native/spill native/fs native/faults native/plugin native/accelerate native/engine/rocksdb -name '*.cc' -print0 |
  xargs -0 -n 1 -P "${JOBS:-2}" "${CXX:-c++}" -std=c++20 -fsyntax-only -Wall -Wextra -Werror -isystem "$headers" \
    -Inative -Inative/spill/include
