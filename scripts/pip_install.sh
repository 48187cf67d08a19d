#!/bin/sh
# Installs the package with pip into a clean virtual environment and uses it from there, far from the checkout: the
# command, the engines, the plugin and the accelerator. Takes as long as a build.
set -eu
checkout=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "pip: $1" >&2
  exit 1
}

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check "$checkout"
cd "$work"
unset SPILLWAY_NATIVE SPILLWAY_ENGINES SPILLWAY_PLUGIN SPILLWAY_ACCELERATE PYTHONPATH
command=$work/venv/bin/spillway

cat >plan.toml <<END
name = "installed"
[drive]
preset = "quickstart"
pacing = "off"
[engine]
name = "rocksdb"
[load]
num = 20_000
value_bytes = 400
[[phases]]
name = "load"
workload = "fillseq"
END
for engine in rocksdb leveldb spillway wiredtiger; do
  [ "$engine" != wiredtiger ] || [ -e venv/lib/libspillway-engine-wiredtiger.so ] || continue
  "$command" run plan.toml --set engine.name="$engine" --out "run-$engine" >said 2>&1 || fail "$(cat said)"
  [ -s "run-$engine/report.html" ] || fail "$engine left no report"
done
LD_PRELOAD="$work/venv/lib/librocksdb-spillway.so" db_bench --db="$work/on-a-drive" --benchmarks=fillseq --num=1000 \
  --env_uri=spillway://preset:quickstart,pacing:off >said 2>&1 || fail "$(cat said)"
[ -s spillway-counters.json ] || fail "the plugin wrote no counters"
"$command" accelerate -- db_bench --db="$work/accelerated" --benchmarks=fillrandom --num=10000 >said 2>&1 || fail "$(cat said)"
grep -q '^spillway: .* diverted in ' said || fail "$(cat said)"
echo "pip: the command, its engines, the plugin and the accelerator work from a clean environment"
