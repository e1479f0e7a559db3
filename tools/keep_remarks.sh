#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# keep_remarks.sh OBJECT COMMAND...: runs a compiler, and keeps what it says of loops that it has made vectors of in OBJECT.vec, where
# t030 reads it. All else that it says goes where it would.
object=$1
shift
"$@" 2>"$object.said"
status=$?
grep ': optimized: ' "$object.said" >"$object.vec"
grep -v ': optimized: ' "$object.said" >&2
rm -f "$object.said"
exit $status
