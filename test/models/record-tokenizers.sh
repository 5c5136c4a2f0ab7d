#!/usr/bin/env bash
# Records again what the reference library makes of the test corpus: everything
# in tokenizer/testdata that is not written by hand. Needs Node and the network.
#
#   record-tokenizers.sh [NAME...]     default: all tokenizers and variants
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
testdata=$here/../../tokenizer/testdata
models=$("$here/fetch.sh")
addon=$models/.reference-0.23.2
if [[ ! -d $addon/node_modules/tokenizers ]]; then
  mkdir -p "$addon"
  (cd "$addon" && npm install --silent --no-audit --no-fund --prefix . tokenizers@0.23.2)
fi
mkdir -p "$testdata/reference"
if (($# == 0)); then
  node "$here/record-small.mjs" "$addon/node_modules/tokenizers" "$testdata"
fi
node "$here/record-tokenizers.mjs" "$addon/node_modules/tokenizers" "$models" "$testdata" "$@"
