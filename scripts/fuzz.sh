#!/bin/sh
# Lets libFuzzer choose commands for the drive model, with assertions and sanitizers on.
#   scripts/fuzz.sh SECONDS
# Cases that taught it something are kept in build-fuzz/corpus; one that broke something is named at the end.
set -eu
cd "$(dirname "$0")/.."
scripts/packages.sh build fuzz

cmake -G Ninja -S . -B build-fuzz -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang >/dev/null
cmake --build build-fuzz --target fuzz_ssd_guided
mkdir -p build-fuzz/corpus
build-fuzz/fuzz/fuzz_ssd_guided -max_total_time="$1" -artifact_prefix=build-fuzz/ -print_final_stats=1 build-fuzz/corpus
