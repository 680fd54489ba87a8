#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The table of doc/guide/loop.md is what unit_ends prints, and two rows that session/close_test.c tests.
#
#     table_test.sh UNIT_ENDS
set -euo pipefail

page=$PLX_SOURCE_ROOT/doc/guide/loop.md
diff -u <(sed -n '/^<!-- unit_ends --table -->$/,/^<!-- end -->$/p' "$page" | sed '1d;$d' | grep -v '^| session |') <("$1" --table) || {
	echo "$page: put what unit_ends --table prints between its two marks"
	exit 1
}
