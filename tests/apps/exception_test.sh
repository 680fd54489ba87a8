#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds and runs exception*.cc, some with a part in C. 77, skipped, without a C++ compiler.
#
#     exception_test.sh SANITIZER CC [OPTION...]
set -euo pipefail
# shellcheck source=tests/apps/cxx.sh
. "$(dirname "${BASH_SOURCE[0]}")/cxx.sh" "$@"

temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cxx+=(-std=c++17 -Wold-style-cast -pedantic-errors "${options[@]}")
cc+=("${options[@]}" -std=gnu11 -fexceptions -Wno-unused-parameter -Wno-missing-field-initializers)
export NETIO_OPTIONS='--huge none --provider tcp'

for program in "$PLX_SOURCE_ROOT"/tests/apps/exception*.cc; do
	parts=("$program")
	if [[ -e ${program%c} ]]; then
		"${cc[@]}" -c "${program%c}" -o "$temp/part.o"
		parts+=("$temp/part.o")
	fi
	"${cxx[@]}" "${parts[@]}" "$PLX_BUILD_ROOT/libpollux.so" -o "$temp/exception"
	timeout 60 "$temp/exception" || {
		echo "failed: $program"
		exit 1
	}
done
