#!/bin/sh
# Has the compiler check what includes RocksDB's headers with those of other versions, without their libraries: the
# library, the file system, the plugin and the accelerator for programs as they are.
#
#   scripts/headers.sh 9.10.0 11.8.1
#
# CXX names the compiler, as for CMake.
#
# Headers of 9.10.0 are those of Debian 13's package, which apt verifies; of 11.8.1 those of the crate librocksdb-sys, which
# cargo verifies. They are kept for other checkouts, in $XDG_CACHE_HOME/spillway or ~/.cache/spillway. Exit code 1: a source
# does not compile. Exit code 2: there are no headers.
set -eu
cd "$(dirname "$0")/.."

fail() {
  echo "scripts/headers.sh: $1" >&2
  exit 2
}

# $1: a version, $2: the directory for rocksdb/. What apt reads here is its own: nothing of the system's lists changes.
from_debian_13() {
  to=$2
  mirror=$(apt-get indextargets --format '$(SITE)' | grep '/debian/*$' | head -n 1)
  [ -n "$mirror" ] || fail "this system has no Debian mirror among the sources of apt"
  place=$PWD/build-headers/apt
  mkdir -p "$place/lists/partial" "$place/archives/partial"
  echo "deb $mirror trixie main" >"$place/sources.list"
  set -- "$1" -q -o "Dir::Etc::SourceList=$place/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o "Dir::State::Lists=$place/lists" -o "Dir::Cache=$place" -o APT::Sandbox::User=root -o Acquire::Languages=none
  version=$1
  shift
  apt-get "$@" update >&2
  (cd "$place" && rm -f ./*.deb && apt-get "$@" download librocksdb-dev/trixie >&2)
  dpkg-deb --extract "$place"/librocksdb-dev_"$version"-*.deb "$place/root" || fail "Debian 13 has another RocksDB than $version"
  cp -R "$place/root/usr/include/rocksdb" "$to/"
}

# $1: a version, $2: the directory for rocksdb/.
from_crate() {
  source=build-headers/source
  rm -rf "$source" "$source.crate"
  scripts/rocksdb_source.sh "$1" "$source"
  cp -R "$source/include/rocksdb" "$2/"
  rm -rf "$source"
}

[ $# -gt 0 ] || fail "name versions: 9.10.0, 11.8.1"
for version in "$@"; do
  build=build-headers/$version
  kept=${XDG_CACHE_HOME:-$HOME/.cache}/spillway/rocksdb-headers/$version
  case $version in
    9.10.0) fetch=from_debian_13 ;;
    11.8.1) fetch=from_crate ;;
    *) fail "no headers of RocksDB $version are known; there are 9.10.0 and 11.8.1" ;;
  esac
  if [ ! -e "$kept" ]; then
    mkdir -p "$(dirname "$kept")"
    part=$(mktemp -d "$kept.XXXXXX")
    "$fetch" "$version" "$part"
    chmod 755 "$part"
    mv -T "$part" "$kept" 2>/dev/null || rm -rf "$part" # another one was faster
  fi
  # A package of headers alone. Its path is the compiler's option for system headers: their warnings are not ours.
  mkdir -p "$build/packages"
  printf 'Name: rocksdb\nDescription: headers\nVersion: %s\nCflags: -isystem %s\n' "$version" "$kept" \
    >"$build/packages/rocksdb.pc"
  PKG_CONFIG_PATH="$PWD/$build/packages" cmake -G Ninja -S . -B "$build/syntax" -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O0 \
    -DCCACHE_PROGRAM="$PWD/scripts/syntax_only.sh" -DSPILLWAY_TESTS=OFF -DSPILLWAY_BENCH=OFF \
    -DSPILLWAY_INSTALL=OFF -DCMAKE_COMPILE_WARNING_AS_ERROR=ON \
    >"$build/log" 2>&1 || fail "$(cat "$build/log")"
  # Objects without the libraries below them, which include nothing of RocksDB.
  objects=$(ninja -C "$build/syntax" -t targets all |
    sed -n 's/^\(native\/\(spill\|fs\|plugin\|accelerate\)\/.*\.o\): .*/\1/p')
  [ -n "$objects" ] || fail "nothing is to be compiled"
  echo "headers: RocksDB $version"
  # shellcheck disable=SC2086 # a list of words
  ninja -C "$build/syntax" --quiet $objects || exit 1
done
