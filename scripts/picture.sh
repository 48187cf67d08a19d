#!/bin/sh
# Takes the README's picture: the top of a report, as a browser shows it.
#   scripts/picture.sh REPORT.html
set -eu
cd "$(dirname "$0")/.."
report=$(realpath "$1")

for browser in chromium google-chrome chromium-browser; do
  command -v "$browser" >/dev/null 2>&1 && break
done
# A browser's sandbox does not work for root; the page is our own.
sandbox=
[ "$(id -u)" -ne 0 ] || sandbox=--no-sandbox
# Virtual time lets the charts finish drawing before the picture is taken.
"$browser" --headless=new $sandbox --disable-gpu --hide-scrollbars --window-size=1280,2080 --virtual-time-budget=10000 \
  --screenshot="$PWD/docs/demo.png" "file://$report" 2>/dev/null
echo docs/demo.png
