#!/bin/sh
# Runs the quickstart plan and shows the report it made.
set -eu
cd "$(dirname "$0")/.."

out=runs/quickstart-$(date +%Y%m%d-%H%M%S)
.venv/bin/spillway run plans/quickstart.toml --out "$out"
report=$out/report.html
if [ ! -f "$report" ]; then
  echo "demo: the run ended without $report; its directory $out says why." >&2
  exit 1
fi
if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && [ -z "${CI:-}" ] && command -v xdg-open >/dev/null 2>&1; then
  xdg-open "$report" >/dev/null 2>&1 || true
fi
echo "Report: $PWD/$report"
