#!/bin/sh
# RocksDB's source as the crate librocksdb-sys has it, which cargo fetches and verifies:
#   scripts/rocksdb_source.sh 11.8.1 DIRECTORY     DIRECTORY must not exist
set -eu
fail() {
  echo "scripts/rocksdb_source.sh: $1" >&2
  exit 2
}
[ $# -eq 2 ] || fail "usage: scripts/rocksdb_source.sh VERSION DIRECTORY"
# The version of the crate that has it.
case $1 in
  11.8.1) crate=0.19.0 ;;
  10.4.2) crate=0.17.3 ;;
  8.10.0) crate=0.16.0 ;;
  *) fail "no crate is known that has RocksDB $1; known are 8.10.0, 10.4.2 and 11.8.1" ;;
esac
[ ! -e "$2" ] || fail "$2 exists; name a directory that does not"
command -v cargo >/dev/null 2>&1 || fail "cargo is missing; scripts/packages.sh headers installs it"

# A package that has the crate as its one dependency: cargo checks the file against the registry's index.
work=$2.crate
mkdir -p "$work/src"
printf '[package]\nname = "rocksdb-source"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n' >"$work/Cargo.toml"
printf 'librocksdb-sys = { version = "=%s", default-features = false }\n' "$crate" >>"$work/Cargo.toml"
: >"$work/src/lib.rs"
(cd "$work" && cargo vendor --quiet vendor >/dev/null)
mv "$work/vendor/librocksdb-sys/rocksdb" "$2"
rm -rf "$work"
