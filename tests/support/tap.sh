# SPDX-License-Identifier: Apache-2.0
#
# tap.sh: the words of a shell test, as tap.h, tap.lua and tap.py are of others: TAP on standard output. Must not know Quern. Use:
#   . "$(dirname "$0")/../support/tap.sh"; ...; done_testing
# A test that fails is followed by the end of the files $said and $why, without lines that say of something that it is ok.
n=0 bad=0
said=said why=why
# Compilers for what is not optimised, where it does not matter which: Clang takes a third of GCC's time.
quick_cc=$(command -v clang-19 || echo cc)
quick_cxx=$(command -v clang++-19 || echo c++)

ok() { # ok STATUS NAME...: passes when STATUS is 0
  tap_status=$1
  shift
  n=$((n + 1))
  if [ "$tap_status" = 0 ]; then
    echo "ok $n - $*"
  else
    bad=$((bad + 1))
    echo "not ok $n - $*"
    for tap_file in "$said" "$why"; do
      [ ! -s "$tap_file" ] || grep -v '^ok ' "$tap_file" | sed 's/^/# /' | tail -40
    done
  fi
}
try() { # try NAME COMMAND...: passes when the command does; what it prints goes to $said
  tap_name=$1
  shift
  "$@" >"$said" 2>&1
  ok $? "$tap_name"
}
refused() { # refused NAME WORDS COMMAND...: passes when the command fails and says the words
  tap_name=$1 tap_words=$2
  shift 2
  ! "$@" >"$said" 2>&1 && grep -q "$tap_words" "$said"
  ok $? "$tap_name"
}
runs() { # a program that prints TAP of its own
  "$1" >"$said" 2>&1 && ! grep -q '^not ok' "$said"
}
skip() { # skip NAME REASON
  n=$((n + 1))
  echo "ok $n - $1 # SKIP $2"
}
in_part() { # in_part K N: whether case K is in this run's part of cases that are cut in N, one for each day; in full all are
  [ "${QUERN_TEST_EXHAUSTIVE-}" = 1 ] && return 0
  [ -n "${tap_day-}" ] || { tap_day=${QUERN_TEST_DAY:-$(($(date +%s) / 86400))}; echo "# QUERN_TEST_DAY=$tap_day: its part of the cases"; }
  [ $(($1 % $2)) = $((tap_day % $2)) ]
}
skip_all() {
  echo "1..0 # SKIP $*"
  exit 0
}
skip_sanitised() { # skip_sanitised FILE: skips all tests where the library, or a module, is built with a sanitizer
  if nm -D "$1" | grep -q '__asan_\|__tsan_\|__ubsan_'; then
    skip_all "$(basename "$1") is built with a sanitizer: plain programs cannot load it"
  fi
}
bail() {
  echo "Bail out! $*"
  exit 255
}
done_testing() {
  echo "1..$n"
  [ $bad = 0 ]
}
