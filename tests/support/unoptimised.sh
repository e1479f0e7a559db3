#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# unoptimised.sh: a compiler's command line with -O0 as its last word: CMake's launcher where a project's optimised build would take
# long, and other tests look at optimised code.
exec "$@" -O0
