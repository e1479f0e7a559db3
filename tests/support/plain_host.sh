# SPDX-License-Identifier: Apache-2.0
#
# plain_host.sh: sourced by tests that build hosts with the library in them, beside a module. plain_host MODULE begins such a test;
# compile builds a host. Sets work, said, module, runtime, generated, CC.
# QUERN_BUILD_DIR: where libquern.a and quern/MODULE.so are; QUERN_SOURCE_DIR: the repository. Prints TAP.
LC_ALL=C
export LC_ALL
. "$(dirname "$0")/../support/tap.sh"
: "${QUERN_BUILD_DIR:?the folder of libquern.a}" "${QUERN_SOURCE_DIR:?the repository}"
CC=${CC:-cc}
work=$(mktemp -d) || bail "no temporary folder"
trap 'rm -rf "$work"' EXIT
said=$work/log
runtime=$QUERN_SOURCE_DIR/runtime
generated=$QUERN_BUILD_DIR/generated
QUERN_MODULE_DIR=$QUERN_BUILD_DIR/quern
export QUERN_MODULE_DIR
plain_host() { # plain_host MODULE
  echo "TAP version 13"
  module=$QUERN_BUILD_DIR/quern/$1.so
  if [ ! -f "$module" ]; then
    skip_all "the module $1 is not built"
  fi
  skip_sanitised "$module"
}
compile() { # compile OUT SOURCE FLAGS...: a host with the library in it, all of its names exported
  out=$1
  shift
  $CC -std=gnu11 -O1 -rdynamic -Wall -Wextra -Werror -D_GNU_SOURCE -I"$QUERN_SOURCE_DIR" -I"$runtime" -I"$QUERN_SOURCE_DIR/include" -I"$generated" \
    -I"$generated/runtime" -I"$work" "$@" -o "$work/$out" -L"$QUERN_BUILD_DIR" -l:libquern.a -lpthread -ldl -lm >"$said" 2>&1
}
