#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t315-abi-baseline: the library's ABI against the one in tests/product/abi, by abidiff: functions and versioned structs may have been
# added to, nothing else; and that abidiff sees a member in the middle of a struct, another parameter and a function that is gone.
LC_ALL=C
export LC_ALL
. "$(dirname "$0")/../support/tap.sh"

: "${QUERN_BUILD_DIR:?the folder of libquern.so}" "${QUERN_SOURCE_DIR:?the repository}"
work=$(mktemp -d) || bail "no temporary folder"
trap 'rm -rf "$work"' EXIT
said=$work/log
echo "TAP version 13"
skip_sanitised "$QUERN_BUILD_DIR/libquern.so"
abi=$QUERN_SOURCE_DIR/tests/product/abi
baseline=$abi/quern.abi
for tool in abidw abidiff; do
  command -v $tool >/dev/null || { echo "1..0 # SKIP no $tool here (Debian's package abigail-tools)"; exit 0; }
done
[ "$(uname -m)" = x86_64 ] || { echo '1..0 # SKIP the baseline is of x86-64'; exit 0; }

try 'the ABI of this build' sh "$abi/make.sh" "$QUERN_BUILD_DIR" "$work/now.abi"
sed -n "s/.*<elf-symbol name='\([^']*\)'.*/\1/p" "$work/now.abi" | sort >"$work/described"
nm -D --defined-only "$QUERN_BUILD_DIR/libquern.so" | awk '{print $NF}' | grep -v '^quern_builtin_' | sort | diff - "$work/described" >"$said" 2>&1
ok $? "has the functions of libquern.so: $(wc -l <"$work/described")"

differs() { abidiff --no-added-syms --suppressions "$abi/growth.ini" "$1" "$2" >"$said" 2>&1; }
differs "$baseline" "$work/now.abi"
ok $? 'only additions since the baseline (else: tests/product/abi/make.sh, docs/versions.md)'

# Each is seen, and what may be added is not.
size=$(sed -n "s/.*name='quern_options' size-in-bits='\([0-9]*\)'.*/\1/p" "$baseline")
last=$(sed -n "/name='quern_options' size/,/<\/class-decl>/s/.*var-decl name='\([^']*\)'.*/\1/p" "$baseline" | tail -1)
# cut MEMBER BITS: the baseline with that member of quern_options less, and the struct so much smaller, as an older one.
cut() {
  awk -v last="name='$1'" -v was="'$size'" -v now="'$((size - $2))'" '
    /name=.quern_options. size/ { inside = 1; sub("size-in-bits=" was, "size-in-bits=" now) }
    /<\/class-decl>/ { inside = 0 }
    inside && /<data-member/ { held = $0; next }
    inside && index($0, last) { skip = 2 }
    skip { skip--; held = ""; next }
    held != "" { print held; held = "" }
    { print }' "$baseline" >"$work/other.abi"
  ! cmp -s "$work/other.abi" "$baseline"
}
cut host 0 && ! differs "$work/other.abi" "$baseline"
ok $? 'a member elsewhere is seen'
sed "/name='quern_cache_clear'/,/<\/function-decl>/{/<parameter/d}" "$baseline" >"$work/other.abi"
! differs "$work/other.abi" "$baseline"
ok $? 'parameters that were added are seen'
sed "/elf-symbol name='quern_free'/d;/function-decl name='quern_free'/,/<\/function-decl>/d" "$baseline" >"$work/other.abi"
! differs "$baseline" "$work/other.abi"
ok $? 'a function that is gone is seen'
differs "$work/other.abi" "$baseline"
ok $? 'a new one is none'
cut "$last" 64 && differs "$work/other.abi" "$baseline"
ok $? "nor is a member at the end of a struct that says its size ($last)"
done_testing
