#!/usr/bin/env bash
# Starts one SGLang server (CPU) per port on a model folder made by make-model.py.
#
#   sglang-up.sh PORT [PORT...] [-- extra server options]
#
# By hand only: the first start installs some 11 GB and compiles one line of C (a
# stand-in for the CUDA driver's library, without which SGLang's kernels do not load;
# needs gcc). A later start takes 40 s on an idle machine, minutes on a busy one.
# BATON_E2E_CACHE (default: the user's cache folder) keeps the installation.
# Prints one line per server: "<pid> <port> <log file>". Stop them by these pids;
# SGLang ends its other processes itself, also after a SIGKILL.
# BATON_E2E_MODEL=smollm2 (default, real text) or tiny (random weights).
set -euo pipefail
name=sglang-up.sh
source "$(dirname "$0")/servers.sh"
which=${BATON_E2E_MODEL:-smollm2}
take_ports "$@"

venv=$cache/sglang
pip=("$venv/bin/pip" --quiet --no-input --disable-pip-version-check --no-cache-dir)
exec 9>"$cache/.sglang.lock"; flock 9
if [[ ! -e $venv/.ready ]]; then
  rm -rf "$venv"
  "$python" -m venv "$venv" >&2
  "${pip[@]}" install sglang==0.5.23 gguf==0.19.0 accelerate==1.15.0 >&2
  mkdir -p "$venv/driver"
  # The one symbol that is looked up; it says that no pointer is the device's.
  printf 'int cuPointerGetAttribute(void *data, int attribute, unsigned long long pointer) { (void)data; (void)attribute; (void)pointer; return 999; }\n' >"$venv/driver/cuda.c"
  gcc -shared -fPIC -o "$venv/driver/libcuda.so.1" "$venv/driver/cuda.c"
  touch "$venv/.ready"
fi
make_model "$which" "$venv"
flock -u 9; exec 9>&-

for port in "${ports[@]}"; do
  LD_LIBRARY_PATH="$venv/driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" HF_HUB_OFFLINE=1 SGLANG_USE_CPU_ENGINE=1 OMP_NUM_THREADS="${BATON_E2E_THREADS:-1}" \
    nohup "$venv/bin/python" -m sglang.launch_server --model-path "$model" --served-model-name "$which" --host 127.0.0.1 --port "$port" \
    --device cpu --attention-backend torch_native --sampling-backend pytorch --dtype float32 --context-length 2048 --max-total-tokens 8192 \
    ${extra[@]+"${extra[@]}"} >"$cache/logs/sglang-$port.log" 2>&1 &
  pids+=($!)
done
await sglang /ready 600
