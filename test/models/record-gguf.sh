#!/usr/bin/env bash
# Records again what llama.cpp's own tokenizer makes of the test corpus, for the
# vocabularies of fetch-gguf.sh. Takes the llama.cpp of the end-to-end tests
# (test/e2e/requirements-llamacpp.txt). Some fifteen minutes for everything.
#
#   record-gguf.sh [NAME...]           default: everything
#   record-gguf.sh --show NAME         prints texts and ids instead
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
testdata=$here/../../tokenizer/testdata
vocabularies=$("$here/fetch-gguf.sh")
server=$("$here/../e2e/llamacpp-up.sh" --install | cut -d' ' -f1)
libraries=$(dirname "$server")
mkdir -p "$testdata/gguf"
export LD_LIBRARY_PATH=$libraries
show=
if [[ ${1:-} == --show ]]; then show=--show; shift; fi
exec "${BATON_E2E_PYTHON:-python3}" "$here/record-gguf.py" $show "$libraries" "$vocabularies" "$testdata" "$@"
