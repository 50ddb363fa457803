# Sourced by ../dev: what the machine must have, and how it is installed. Uses dev's say() and die().
# shellcheck shell=bash

readonly nvrtc_wheel='nvidia-cuda-nvrtc==13.0.88'
readonly venv="$PWD/build/python"
readonly build_packages=(g++ cmake ninja-build libfmt-dev libgtest-dev librapidcheck-dev libncurses-dev pkgconf python3)
readonly llvm_folder="$PWD/build/llvm"

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "needs root for: $* (neither root nor sudo here)"
  fi
}

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# A tool counts wherever it comes from; a library counts if its package is there.
present() {
  case "$1" in
    g++ | cmake | clang-tidy | python3) command -v "$1" >/dev/null ;;
    pkgconf) command -v pkg-config >/dev/null ;;
    ninja-build) command -v ninja >/dev/null ;;
    *) installed "$1" ;;
  esac
}

missing_packages() {
  local package
  for package in "$@"; do present "$package" || printf '%s ' "$package"; done
}

# Package lists are fetched only if there are none that know these packages.
ensure_lists() {
  command -v apt-get >/dev/null || die "install what these Debian packages hold, then try again: $*"
  apt-get install -s "$@" >/dev/null 2>&1 && return
  say "fetching apt's package lists"
  as_root apt-get update -q
}

# "86 packages, 96.2 MB to download, 383 MB on disk", as the apt of Debian 12 and Ubuntu 24.04 counts.
apt_summary() {
  LC_ALL=C apt-get install -o Debug::NoLocking=1 --assume-no --no-install-recommends "$@" 2>/dev/null | sed -nE \
    -e 's/.* ([0-9]+) newly installed.*/\1 packages/p' \
    -e 's,^Need to get ([0-9.]+ [kMG]?B)(/.*)? of archives.*,\1 to download,p' \
    -e 's/^After this operation, (.*) of additional disk space.*/\1 on disk/p' | paste -sd, | sed 's/,/, /g'
}

ensure_packages() {
  local missing
  read -ra missing <<<"$(missing_packages "$@")"
  [ ${#missing[@]} = 0 ] && return
  ensure_lists "${missing[@]}"
  say "installing ${missing[*]}: $(apt_summary "${missing[@]}")"
  local install=(env DEBIAN_FRONTEND=noninteractive
    apt-get install -y --no-install-recommends -o Dpkg::Use-Pty=0 -q "${missing[@]}")
  # The lists can be older than the mirror's files.
  as_root "${install[@]}" || { as_root apt-get update -q && as_root "${install[@]}"; }
}

# Whether CMake will find static libraries of LLVM by the llvm-config it prefers.
llvm_installed() {
  local config="${LLVM_CONFIG:-}"
  [ -n "$config" ] || config=$(command -v llvm-config llvm-config-{14..20} | head -1) || true
  [ -n "$config" ] && [ -e "$("$config" --libdir)/libLLVMSupport.a" ]
}

llvm_present() { [ -e "$llvm_folder/lib/libLLVMSupport.a" ] || llvm_installed; }

# The package that the distribution's llvm-dev stands for, e.g. llvm-14-dev.
llvm_package() { LC_ALL=C apt-cache depends llvm-dev | sed -n 's/^ *Depends: \(llvm-[0-9]*-dev\)$/\1/p'; }

# Two libraries and their headers are all that is needed of LLVM. llvm-dev would bring a gigabyte of compilers with it,
# so its package is downloaded and verified by apt, those files are taken out of it, and nothing is installed.
ensure_llvm() {
  [ -z "${LLVM_CONFIG:-}" ] || llvm_installed || die "LLVM_CONFIG is $LLVM_CONFIG, which has no static library LLVMSupport"
  llvm_present && return
  ensure_lists llvm-dev
  local package new="$llvm_folder.new"
  package=$(llvm_package) || true
  [ -n "$package" ] || die 'this distribution has no package llvm-dev; LLVM_CONFIG=FILE names another LLVM'
  say "taking LLVM Support from $package into build/llvm"
  rm -rf "$new"
  mkdir -p "$new"
  local download=(apt-get download -q -o APT::Sandbox::User=root "$package")
  (cd "$new" && { "${download[@]}" || { as_root apt-get update -q && "${download[@]}"; }; })
  dpkg-deb --fsys-tarfile "$new"/*.deb | tar -x -C "$new" --wildcards \
    --transform 's,^\./usr/lib/llvm-[0-9]*/,,;s,^\./usr/include/llvm-[-c0-9]*/,include/,' \
    './usr/lib/llvm-*/lib/libLLVM'{Support,Demangle}.a './usr/include/llvm-*/llvm/'{ADT,Config,Demangle,Support} \
    './usr/include/llvm-c-*/llvm-c/*.h'
  rm "$new"/*.deb
  rm -rf "$llvm_folder"
  mv "$new" "$llvm_folder"
}

ensure_wheel() {  # ensure_wheel NAME==VERSION
  if [ ! -x "$venv/bin/pip" ]; then
    ensure_packages python3 python3-venv
    python3 -m venv "$venv"
  fi
  local name="${1%%==*}"
  compgen -G "$venv/lib/python3*/site-packages/${name//-/_}-${1##*==}.dist-info" >/dev/null && return
  say "installing $1 into build/python"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "$1"
}

# Asks the program just built which NVRTC jitconv would use. One too old for the newest architecture the tests compile
# for (sm_120 came with 12.8) counts as none.
ensure_nvrtc() {  # ensure_nvrtc PROGRAM
  [ -n "${JITCONV_NVRTC_PATH:-}" ] && return
  local version
  version=$("$1" --version | sed -n 's/^NVRTC \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
  read -r major minor <<<"${version:-0 0}"
  if [ "$major" -gt 12 ] || { [ "$major" = 12 ] && [ "$minor" -ge 8 ]; }; then return; fi
  ensure_wheel "$nvrtc_wheel"
  JITCONV_NVRTC_PATH=$(compgen -G "$venv/lib/python3*/site-packages/nvidia/cu13/lib/libnvrtc.so.13") \
    || die "$nvrtc_wheel holds no libnvrtc.so.13"
  export JITCONV_NVRTC_PATH
}

setup() {
  ensure_packages "${build_packages[@]}"
  ensure_llvm
}
