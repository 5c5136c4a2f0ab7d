#!/usr/bin/env bash
# Compares the micro-benchmarks of two commits, or of a commit and the work tree.
#
#   stat.sh OLD [NEW]        NEW is the work tree, if it is not given
#
# Both take turns, package by package, so that what else the machine does meets
# both. benchstat (pinned in go.mod) says which differences are none.
#   BENCH      which benchmarks, a regular expression (all)
#   COUNT      how often each is run (6; fewer give no significance)
#   BENCHTIME  for how long (200ms)
set -euo pipefail
cd "$(dirname "$0")/../.."
[[ $# -ge 1 && -n $1 ]] || { echo "usage: stat.sh OLD [NEW]" >&2; exit 2; }

dir=$(mktemp -d)
leave() {
  for side in old new; do
    if [[ -e $dir/$side/.git ]]; then git worktree remove --force "$dir/$side"; fi
  done
  rm -rf "$dir"
}
trap leave EXIT
trap 'exit 130' INT TERM

tree_old=$dir/old
git worktree add --quiet --detach "$tree_old" "$1"
tree_new=$PWD
if [[ -n ${2:-} ]]; then
  tree_new=$dir/new
  git worktree add --quiet --detach "$tree_new" "$2"
fi

for package in $(cd "$tree_new" && grep -rl --include='*_test.go' '^func Benchmark' . | xargs -n 1 dirname | sort -u); do
  program=$dir/$(tr / _ <<<"$package")
  sides=new # first, so that a package that OLD has not is still shown
  (cd "$tree_new" && go test -c -o "$program.new" "$package")
  if [[ -d $tree_old/$package ]] && (cd "$tree_old" && go test -c -o "$program.old" "$package") && [[ -e $program.old ]]; then
    sides="old new"
  fi
  for ((i = 0; i < ${COUNT:-6}; i++)); do
    for side in $sides; do
      tree=tree_$side
      (cd "${!tree}/$package" && "$program.$side" -test.run '^$' -test.bench "${BENCH:-.}" -test.benchmem \
        -test.benchtime "${BENCHTIME:-200ms}") >>"$dir/$side.txt"
    done
  done
done
touch "$dir/old.txt"
go tool benchstat "old=$dir/old.txt" "new=$dir/new.txt"
