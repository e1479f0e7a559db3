#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# soak.sh: the long form of t599: eight hosts for half an hour, at the lowest priority; its table becomes bench/results/soak.md.
#   sh tests/soak.sh [SECONDS [HOSTS]]
# On a copy of the library, so that the build may change meanwhile.
set -eu
cd "$(dirname "$0")/.."
QUERN_SOAK_SECONDS=${1-1800} QUERN_SOAK_HOSTS=${2-8}
export QUERN_SOAK_SECONDS QUERN_SOAK_HOSTS
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/quern"
cp build/libquern.so.0 "$copy"
cp build/quern/*.so "$copy/quern"
cp build/tests/t599-soak "$copy"
LD_LIBRARY_PATH=$copy
export LD_LIBRARY_PATH
status=0
chrt -i 0 nice -n 19 "$copy/t599-soak" >"$copy/log" 2>&1 || status=$?
cat "$copy/log"
[ "$(wc -l <"$copy/log")" -gt 20 ] || exit 1
{
  echo "# Soak"
  echo
  echo "\`sh tests/soak.sh $QUERN_SOAK_SECONDS $QUERN_SOAK_HOSTS\`: what $QUERN_SOAK_HOSTS hosts do is said in [t599](../../tests/jit/t599-soak.c)."
  echo "$(date -u +%F), $(git rev-parse --short HEAD), $(nproc) CPUs, beside other work. RSS, heap, maps, descriptors and threads: the largest"
  echo "of the hosts; the rest: sums."
  echo
  sed -n 's/^# \(| s .*\)/\1/p' "$copy/log"
  sed -n 's/^# \(| s .*\)/\1/p' "$copy/log" | sed 's/[^|]*|/---|/g; s/^---//'
  sed -n 's/^# \(| [0-9].*\)/\1/p' "$copy/log"
  echo
  sed -n 's/^\(\(not \)\{0,1\}ok [0-9]* - \)/- \1/p' "$copy/log"
} >bench/results/soak.md
exit $status
