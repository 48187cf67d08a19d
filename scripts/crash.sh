#!/bin/sh
# Kills and losses of power, with seeds that no earlier run had. The seeds are printed: test_crash --seed repeats one.
#   CRASH_SECONDS  one seed after the other for so long, and a list of those that failed at the end
#   CRASH_TIMES    without CRASH_SECONDS: one seed, with so many times as many deaths as in make test (20)
set -eu
cd "$(dirname "$0")/.."
test_crash=build/tests/native/test_crash

seed=$(date +%s)
if [ -z "${CRASH_SECONDS:-}" ]; then
  echo "crash: seed $seed"
  exec "$test_crash" --times "${CRASH_TIMES:-20}" --seed "$seed"
fi

end=$((seed + CRASH_SECONDS))
rounds=0
failed=
while [ "$(date +%s)" -lt "$end" ]; do
  echo "crash: seed $seed"
  "$test_crash" --gtest_brief=1 --times 1 --seed "$seed" || failed="$failed $seed"
  rounds=$((rounds + 1))
  seed=$((seed + 1))
done
echo "crash: $rounds seeds up to $((seed - 1)) in ${CRASH_SECONDS} s; failed:${failed:- none}"
[ -z "$failed" ]
