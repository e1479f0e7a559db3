#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# build-tree.sh: compiles a generated tree by its sources.txt alone, as someone without CMake would.
#   sh tests/support/build-tree.sh COMPILER TREE OUT [FLAG]...   leaves the objects in OUT; link OUT/*.o and -lpthread
# The tree's own flags are left out unless QUERN_TREE_FLAGS=1: they change speed, never bits. QUERN_TREE_LEVEL: the one level that
# kernels are compiled for; give the tree's QN_ONE_LEVEL along. QUERN_TREE_O1: what is compiled by -O1, whatever the flags say of the
# rest: "core", levels.
set -eu
compiler=$1 tree=$2 out=$3
shift 3
mkdir -p "$out"
list=$tree/sources.txt
flags_of() { [ -z "${QUERN_TREE_FLAGS-}" ] || sed -n "s/^flags $1 //p" "$list"; }
optimised() { case " ${QUERN_TREE_O1-} " in *" $1 "*) echo -O1 ;; esac; }
case $(uname -m) in
  x86_64) levels='v2 v3 v4' ;;
  *) levels=generic ;;
esac
levels=${QUERN_TREE_LEVEL:-$levels}
{
  sed -n 's/^core //p' "$list" | while read -r file; do
    printf '%s\0' "$file" "$(echo "$file" | tr / _).o" "$(optimised core)"
  done
  for level in $levels; do
    flags=$(sed -n "s/^flags $level //p" "$list")
    # This definition puts the level into a kernel's name.
    [ -z "${QUERN_TREE_LEVEL-}" ] || flags=$(echo "$flags" | sed 's/-D[A-Z_]*QN_ISA=[a-z0-9]*//')
    case "$compiler" in
      *gcc*) gcc=$(flags_of gcc) ;;
      *) gcc= ;;
    esac
    flags="$flags $(optimised "$level")"
    sed -n 's/^kernel //p' "$list" | while read -r file; do
      printf '%s\0' "$file" "$(echo "$file" | tr / _)_$level.o" "$(flags_of common) $gcc $flags"
    done
  done
} >"$out/commands"
# $0 is the compiler's command line; three arguments a file: source, object, flags
xargs -0 -n 3 -P 2 sh -c '
  tree=$1 out=$2 command=$3; shift 3
  $command $3 -I"$tree" -c -o "$out/$2" "$tree/$1" || exit 255' "$0" "$tree" "$out" "$compiler $*" <"$out/commands"
