#!/usr/bin/env bash
# Installs the gateways that baton is compared with, each in a folder of its own
# below one cache folder; nothing outside of it is touched, no service starts.
#
#   install.sh [NAME...]     all, or the named ones
#
# What is there already in the pinned version is kept. A peer that cannot be
# installed here is named in one line, and the others follow: the exit status is
# 0. The file NAME/version says that NAME is whole, and which version it is.
# BATON_PEERS (default: below the user's cache folder) is the cache folder.
set -euo pipefail

cache=${BATON_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/baton/peers}
python=${PYTHON:-python3}

# A Debian release drops a version when a fix for it is there, and another
# release never had it. So where a pinned package of Debian is gone, the one that
# is there is taken; its version stands in the table.
declare -A pip=(
  [smg]='smg==1.13.0'
  [vllm-router]='vllm-router==0.1.17'
  [sglang-router]='sglang-router==0.3.2'
  # 1.82.7, 1.82.8 and 1.107.0 are reported as compromised: do not loosen this pin.
  [litellm]='litellm[proxy]==1.106.4'
)
declare -A deb=(
  [nginx]='nginx=1.22.1-9+deb12u11 nginx-common=1.22.1-9+deb12u11'
  [haproxy]='haproxy=2.6.12-1+deb12u4 liblua5.3-0=5.3.6-2 libopentracing-c-wrapper0=1.1.3-3+b1 libopentracing1=1.6.0-4'
)

# pip_install DIR REQUIREMENT
pip_install() {
  "$python" -m venv "$1/venv" &&
    "$1/venv/bin/pip" install --quiet --no-input --disable-pip-version-check --only-binary :all: "$2" &&
    echo "${2##*==}" >"$1/.version"
}

# deb_install DIR PACKAGE=VERSION...
deb_install() {
  local dir=$1 package
  shift
  command -v dpkg >/dev/null || { echo "no dpkg here"; return 1; }
  for package in "$@"; do
    (cd "$dir" && { apt-get download -qq "$package" 2>/dev/null || apt-get download -qq "${package%%=*}"; }) || return 1
  done
  for package in "$dir"/*.deb; do
    dpkg -x "$package" "$dir/root" || return 1
  done
  dpkg-deb -f "$dir/${1%%=*}"_*.deb Version >"$dir/.version" || return 1
  rm "$dir"/*.deb
  local program missing
  program=$dir/root/usr/sbin/${1%%=*}
  missing=$(LD_LIBRARY_PATH=$(echo "$dir"/root/usr/lib/*-linux-gnu) ldd "$program" | grep 'not found' || true)
  [[ -z $missing ]] || { echo "libraries are missing: $missing"; return 1; }
}

# install NAME
install() {
  local name=$1 pinned=${pip[$1]:-${deb[$1]:-}} dir=$cache/$1
  [[ -n $pinned ]] || { echo "$name: no peer of this name; there are ${!pip[*]} ${!deb[*]}"; return; }
  if [[ -e $dir/version && $(cat "$dir/pinned") == "$pinned" ]]; then return; fi
  rm -rf "$dir"
  mkdir -p "$dir"
  local done=
  if [[ -n ${pip[$name]:-} ]]; then
    pip_install "$dir" "$pinned" >"$dir/log" 2>&1 && done=1
  else
    # shellcheck disable=SC2086 # a list of packages
    deb_install "$dir" $pinned >"$dir/log" 2>&1 && done=1
  fi
  if [[ -z $done ]]; then
    echo "$name: cannot be installed: $(tail -n 1 "$dir/log" | cut -c1-200)"
    return
  fi
  echo "$pinned" >"$dir/pinned"
  mv "$dir/.version" "$dir/version"
}

mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9
if [[ $# -eq 0 ]]; then set -- "${!pip[@]}" "${!deb[@]}"; fi
for name in "$@"; do install "$name"; done
