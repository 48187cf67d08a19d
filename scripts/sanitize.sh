#!/bin/sh
# Builds the native tests with a sanitizer and runs them.
#   scripts/sanitize.sh address,undefined|thread BUILD_DIRECTORY
set -eu
cd "$(dirname "$0")/.."
sanitizer=$1
build=$2

# Where the kernel scatters mappings widely, older thread sanitizers find their own addresses taken.
fixed="setarch $(uname -m) --addr-no-randomize"
$fixed true 2>/dev/null || fixed=

# Debug keeps the assertions; -O1 keeps the tests bearable. Two of gcc's warnings rest on ranges of values, which it loses
# sight of in instrumented code; the ordinary build has them.
cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g" \
  -DCMAKE_CXX_FLAGS="-Wno-format-truncation -Wno-maybe-uninitialized" \
  -DSPILLWAY_SANITIZE="$sanitizer" -DSPILLWAY_BENCH=OFF >/dev/null
# The build runs the tests once, to list them.
$fixed cmake --build "$build"

# WiredTiger asks for memory of any alignment that its option has, and reports what the allocator refuses.
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1
# A scan of thread-local memory fails where a module that has some was unloaded, as WiredTiger's is.
export LSAN_OPTIONS="use_tls=0:suppressions=$PWD/scripts/lsan.suppressions:print_suppressions=0"
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
# The longest history: a stack that is lost is one that the suppressions do not know.
export TSAN_OPTIONS="halt_on_error=1:allocator_may_return_null=1:history_size=7:second_deadlock_stack=1:suppressions=$PWD/scripts/tsan.suppressions"
export SPILLWAY_LONG=1
without=
[ "$sanitizer" != thread ] || without="--label-exclude ^(fuzz|ssd)$"  # the drive model has one thread
# shellcheck disable=SC2086 # an option and its value
$fixed ctest --test-dir "$build" --output-on-failure --parallel "$(nproc)" $without
