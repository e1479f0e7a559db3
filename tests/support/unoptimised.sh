#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# unoptimised.sh COMPILER ARGUMENT...: compiles with -O0 as the last argument. CMake's launcher, or CC, where an optimised build would
# take long and other tests look at optimised code.
exec "$@" -O0
