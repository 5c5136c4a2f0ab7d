#!/usr/bin/env bash
# Records again what the reference library makes of the test corpus, of small
# made-up tokenizers and of Unicode: all test data of tokenizer/ that is not
# written by hand. Needs Node, Go and the network, and some ten minutes.
#
#   record-tokenizers.sh [NAME...]     default: everything; else these
#                                      tokenizers and variants only
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
  node "$here/record-unicode.mjs" "$addon/node_modules/tokenizers" >"$testdata/../ucd/unicode.new"
  mv "$testdata/../ucd/unicode.new" "$testdata/../ucd/unicode.txt"
  (cd "$testdata/../ucd" && go generate)
  node "$here/record-small.mjs" "$addon/node_modules/tokenizers" "$testdata"
fi
node "$here/record-tokenizers.mjs" "$addon/node_modules/tokenizers" "$models" "$testdata" "$@"
