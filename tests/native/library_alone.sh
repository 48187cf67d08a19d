#!/bin/sh
# The library as a part of another project, built where there is RocksDB and nothing else: by add_subdirectory and by
# FetchContent. $1 is the compiler.
set -eu
compiler=$1
checkout=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "$1" >&2
  exit 1
}

# Only RocksDB's package, and those that it asks for, can be found.
mkdir "$work/packages"
copy_package() {
  cp "$(pkg-config --variable=pcfiledir "$1")/$1.pc" "$work/packages"
  for other in $(pkg-config --print-requires --print-requires-private "$1" | sed 's/[ <>=].*//'); do
    [ -f "$work/packages/$other.pc" ] || copy_package "$other"
  done
}
copy_package rocksdb
export PKG_CONFIG_LIBDIR="$work/packages" PKG_CONFIG_PATH=
! pkg-config --exists tomlplusplus || fail "the test hides nothing: pkg-config finds tomlplusplus"
! pkg-config --exists liburing || fail "the test hides nothing: pkg-config finds liburing"
# What is generated is run once: quickly made is better than fast.
set -- -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG"
for package in GTest nlohmann_json fmt CLI11 ZLIB benchmark; do
  set -- "$@" "-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON"
done
! command -v ccache >/dev/null || set -- "$@" -DCMAKE_CXX_COMPILER_LAUNCHER=ccache

run() {
  "$@" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
}

cmake -S "$checkout" -B "$work/alone" "$@" -DSPILLWAY_LIBRARY_ONLY=ON >"$work/log" 2>&1 || fail "$(cat "$work/log")"
! cmake -S "$checkout" -B "$work/whole" "$@" >"$work/log" 2>&1 ||
  fail "the test hides nothing: the whole tree is configured too"

# Both ways give the target that find_package gives. What the project's own files and targets are called does not matter,
# nor what warnings it makes errors of, nor whether it has run-time type information.
mkdir -p "$work/subdirectory/base" "$work/fetched"
cp "$checkout/examples/quickstart.cc" "$work/subdirectory"
echo '#error "not the one of this project"' >"$work/subdirectory/base/result.h"
cat >"$work/subdirectory/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(part LANGUAGES C CXX)
set(CMAKE_COMPILE_WARNING_AS_ERROR ON)
add_compile_options(-fno-rtti -Wpadded -Werror)
add_custom_target(base)
add_custom_target(lint)
add_subdirectory($checkout spillway)
add_compile_options(-Wno-padded)
add_executable(quickstart quickstart.cc)
target_link_libraries(quickstart PRIVATE spillway::spillway)
END
cat >"$work/fetched/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(part LANGUAGES C CXX)
include(FetchContent)
FetchContent_Declare(spillway SOURCE_DIR $checkout)
FetchContent_MakeAvailable(spillway)
if(NOT TARGET spillway::spillway)
  message(FATAL_ERROR "there is no spillway::spillway")
endif()
END
run cmake -S "$work/fetched" -B "$work/fetched/build" "$@"
run cmake -S "$work/subdirectory" -B "$work/build" "$@"
run cmake --build "$work/build" --target quickstart
run "$work/build/quickstart" "$work/db"
grep -Eqx '[1-9][0-9]* diverted' "$work/log" || fail "$(cat "$work/log")"
# What a project builds is what it installs.
run cmake --install "$work/build" --prefix "$work/installed"
[ -z "$(find "$work/installed" -name '*spillway*' 2>/dev/null)" ] || fail "the project installs spillway too"
