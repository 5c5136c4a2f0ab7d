#!/usr/bin/env bash
# Fetches the chat templates of real models, for the tests that compare with
# them: those of the tokenizers that fetch.sh fetches, and the test data of a Go
# module, which is downloaded but not used as one. Prints the folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
models=$("$here/fetch.sh")
module=github.com/ardanlabs/jinja@v1.8.0
sum=h1:NuRapYr/hv8J+4v1KymVAbbu6vuqMu+poXkJHfXqLs4=
if [[ ! -d $models/.templates ]]; then
  echo "fetching $module" >&2
  work=$(mktemp -d "$models/.fetch-templates-XXXXXX")
  trap 'rm -rf "$work"' EXIT
  found=$(cd "$work" && GOFLAGS=-mod=mod GOWORK=off go mod download -json "$module")
  grep -qF "\"Sum\": \"$sum\"" <<<"$found" || { echo "record-templates-fetch.sh: $module is not what it was" >&2; exit 1; }
  dir=$(sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p' <<<"$found")
  mkdir "$work/templates"
  cp "$dir"/testdata/templates/*.jinja "$work/templates/"
  chmod -R u+w "$work/templates"
  mv "$work/templates" "$models/.templates"
fi
echo "$models"
