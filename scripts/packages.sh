#!/bin/sh
# Installs the distribution's packages that the named purposes need.
#   scripts/packages.sh [build] [test] [lint] [fuzz] [bench] [headers]
# Does nothing, quickly, when all are there. Where it cannot install, it names what is missing in one sentence.
set -eu

# Older ones lack parts of the FileSystem and ObjectLibrary interfaces that native/fs and native/plugin use.
oldest_rocksdb=7.0

fail() {
  echo "setup: $*" >&2
  exit 2
}

packages_for() {
  case $1 in
    build)
      echo build-essential cmake ninja-build pkg-config librocksdb-dev rocksdb-tools libleveldb-dev \
        liburing-dev nlohmann-json3-dev libcli11-dev libtomlplusplus-dev libfmt-dev zlib1g-dev libgtest-dev libbenchmark-dev \
        python3 python3-venv
      ;;
    test) echo fio ;; # what reads the jobs that we write; and the browser, below
    lint) echo clang clang-format clang-tidy ;;
    fuzz) echo clang libclang-rt-dev ;;
    bench) echo fio ;; # what the probe is compared with
    headers) # of a RocksDB from a crate; a cargo of another origin does
      command -v cargo >/dev/null 2>&1 || echo cargo
      ;;
    *) fail "'$1' is not a purpose; take some of build, test, lint, fuzz, bench, headers." ;;
  esac
}

# What a build takes when it is there, and does without: an engine of another licence, and a faster linker.
wishes_for() {
  case $1 in
    build) echo libwiredtiger-dev mold ;;
  esac
}

# Where there is no apt we cannot install, but we can look for what the packages would have brought.
missing_without_apt() {
  for tool in c++ cmake ninja pkg-config python3 db_bench; do
    command -v "$tool" >/dev/null 2>&1 || echo "$tool"
  done
  for module in rocksdb liburing nlohmann_json CLI11 tomlplusplus fmt zlib gtest benchmark; do
    pkg-config --exists "$module" 2>/dev/null || echo "the $module library with its headers"
  done
  case " $* " in
    *" test "* | *" bench "*) command -v fio >/dev/null 2>&1 || echo fio ;;
  esac
  case " $* " in
    *" lint "*)
      for tool in clang++ clang-format clang-tidy; do
        command -v "$tool" >/dev/null 2>&1 || echo "$tool"
      done
      ;;
  esac
}

have_browser() {
  command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 ||
    { command -v chromium-browser >/dev/null 2>&1 && [ -d /snap/chromium ]; }
}

# Ubuntu's package only fetches a snap, which we leave to its owner.
browser_package() {
  # shellcheck source=/dev/null
  if [ "$(. /etc/os-release && echo "$ID")" = ubuntu ]; then return; fi
  echo chromium
}

purposes=${*:-build}
wanted=
wishes=
for purpose in $purposes; do
  wanted="$wanted $(packages_for "$purpose")"
  wishes="$wishes $(wishes_for "$purpose")"
done

if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-query >/dev/null 2>&1; then
  missing=$(missing_without_apt "$purposes" | sed 's/$/,/' | tr '\n' ' ' | sed 's/, $//')
  [ -z "$missing" ] || fail "this system has no apt; install by its own means: $missing."
  exit 0
fi

installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]
}
missing=
for package in $wanted; do
  installed "$package" || missing="$missing $package"
done
optional=
for package in $wishes; do
  # Where the lists of this system do not have it, nothing is tried again each time. Lists that are not there yet come below.
  installed "$package" || { [ -z "$missing" ] && [ -z "$(apt-cache policy "$package" 2>/dev/null | grep 'Candidate: [^(]')" ]; } ||
    optional="$optional $package"
done
browser=
case " $purposes " in
  *" test "*)
    if ! have_browser; then
      browser=$(browser_package)
      [ -n "$browser" ] || echo "setup: no Chromium here ('snap install chromium' brings it); browser tests are skipped." >&2
    fi
    ;;
esac
[ -n "$missing$optional$browser" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
  as_root=
elif command -v sudo >/dev/null 2>&1; then
  as_root=sudo
  # Nobody is there to type a password.
  [ -t 0 ] || as_root="sudo -n"
elif [ -n "$missing" ]; then
  fail "these packages are missing and need root to install:$missing (become root, or install sudo)."
else
  [ -z "$optional" ] || echo "setup: root is needed to install$optional; the build does without." >&2
  [ -z "$browser" ] || echo "setup: no Chromium here, and root is needed to install it; browser tests are skipped." >&2
  exit 0
fi

echo "Installing packages:$missing$optional $browser"
apt="env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300"
# shellcheck disable=SC2086 # lists of words, here and below
$as_root $apt update || [ -z "$missing$browser" ] || fail "'apt-get update' failed; these packages are missing:$missing $browser."
if [ -n "$missing" ]; then
  rocksdb=$(apt-cache policy librocksdb-dev | sed -n 's/^ *Candidate: //p')
  if [ -n "$rocksdb" ] && dpkg --compare-versions "$rocksdb" lt "$oldest_rocksdb"; then
    fail "this release packages RocksDB $rocksdb and Spillway needs $oldest_rocksdb or newer;" \
      "use Debian 12, Ubuntu 24.04 or later."
  fi
  # shellcheck disable=SC2086
  $as_root $apt install -y --no-install-recommends $missing >/dev/null ||
    fail "apt could not install:$missing; its own message is above."
fi
for package in $optional; do
  # shellcheck disable=SC2086
  $as_root $apt install -y --no-install-recommends "$package" >/dev/null 2>&1 ||
    echo "setup: apt could not install $package; the build does without." >&2
done
if [ -n "$browser" ]; then
  # shellcheck disable=SC2086
  $as_root $apt install -y --no-install-recommends "$browser" >/dev/null ||
    echo "setup: apt could not install Chromium; browser tests are skipped." >&2
fi
