#!/bin/sh
# Runs the demo's plan and shows the report it made.
set -eu
cd "$(dirname "$0")/.."

out=runs/demo-$(date +%Y%m%d-%H%M%S)
.venv/bin/spillway run plans/demo.toml --out "$out"
report=$out/report.html
if [ ! -f "$report" ]; then
  echo "demo: the run ended without $report; its directory $out says why." >&2
  exit 1
fi
if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && [ -z "${CI:-}" ] && command -v xdg-open >/dev/null 2>&1; then
  xdg-open "$report" >/dev/null 2>&1 || true
fi
echo "Report: $PWD/$report"
