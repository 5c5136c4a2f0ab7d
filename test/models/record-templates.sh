#!/usr/bin/env bash
# Records again what Python makes of chat templates: the results in
# chattemplate/testdata. Needs Python 3.10 or newer, Go, Node and the network.
#
# The reference is transformers itself with its jinja2, in versions that are
# fixed here. No template of others is stored, only hashes of what comes out.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
testdata=$here/../../chattemplate/testdata
models=$("$here/record-templates-fetch.sh")
reference=$models/.transformers-5.24.0
if [[ ! -x $reference/bin/python ]] || ! "$reference/bin/python" -c 'import transformers' 2>/dev/null; then
  python3 -m venv "$reference"
  "$reference/bin/pip" install --quiet jinja2==3.1.6 markupsafe==3.0.3 transformers==5.24.0
fi
"$reference/bin/python" "$here/record-templates-contexts.py" "$testdata/contexts.json" 100 7
"$reference/bin/python" "$here/record-templates.py" "$testdata" "$models"
