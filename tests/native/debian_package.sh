#!/bin/sh
# The Debian package, made from the build directory $1, unpacked, and the example compiled against it with the compiler
# $2. It need not be installed for that.
set -eu
build=$1 compiler=$2
checkout=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "$1" >&2
  exit 1
}

cpack --config "$build/CPackConfig.cmake" -G DEB -B "$work/packed" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
set -- "$work"/packed/*.deb
[ $# -eq 1 ] || fail "not one package: $*"
[ "$(dpkg-deb --field "$1" Package)" = libspillway-dev ] || fail "$(dpkg-deb --field "$1")"

version=$(pkg-config --modversion rocksdb)
major=${version%%.*} rest=${version#*.}
minor=${rest%%.*}
depends="librocksdb-dev (>= $major.$minor), librocksdb-dev (<< $major.$((minor + 1))~)"
[ "$(dpkg-deb --field "$1" Depends)" = "$depends" ] || fail "it depends on $(dpkg-deb --field "$1" Depends)"
dpkg --compare-versions "$version-2" lt "$major.$((minor + 1))~" || fail "RocksDB's own package is refused"
! dpkg --compare-versions "$major.$((minor + 1)).0-1" lt "$major.$((minor + 1))~" || fail "the next RocksDB is taken"

dpkg-deb --contents "$1" >"$work/contents"
for file in include/spillway/db.h include/spillway/c.h include/spillway/rocksdb_version.h libspillway.a \
  pkgconfig/spillway.pc cmake/spillway/spillway-config.cmake doc/libspillway-dev/copyright; do
  grep -q "[ /]\./usr/.*$file\$" "$work/contents" || fail "it lacks $file"
done
! grep -v ' \./usr\(/.*\)\?$' "$work/contents" | grep -v ' \./$' || fail "it has files outside of /usr"
! grep 'spillway-native' "$work/contents" || fail "it has more than the library"

dpkg-deb --extract "$1" "$work/root"
PKG_CONFIG_PATH=$(dirname "$(find "$work/root" -name spillway.pc)")${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
standard=c++17
! pkg-config --atleast-version=10.7 rocksdb || standard=c++20 # RocksDB's headers ask for it
# shellcheck disable=SC2046 # flags are words
"$compiler" -std=$standard -Wall -Wextra -Werror "$checkout/examples/quickstart.cc" -o "$work/quickstart" \
  $(pkg-config --cflags --libs spillway)
"$work/quickstart" "$work/db" >"$work/said"
grep -Eqx '[1-9][0-9]* diverted' "$work/said" || fail "$(cat "$work/said")"
