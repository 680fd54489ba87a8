#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds and runs exception*.cc. 77, skipped, without a C++ compiler.
#
#     exception_test.sh SANITIZER
set -euo pipefail

cxx=${CXX:-c++}
if [[ ${1:-none} != none ]]; then
	echo "a program without the sanitizer cannot load a library with it ($1)"
	exit 77
fi
if ! command -v "${cxx%% *}" >/dev/null; then
	echo "no C++ compiler: $cxx"
	exit 77
fi
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
includes=("$PLX_SOURCE_ROOT"/lib/ "$PLX_SOURCE_ROOT"/lib/*/)
for program in "$PLX_SOURCE_ROOT"/tests/apps/exception*.cc; do
	# A compiler may come with options.
	# shellcheck disable=SC2086
	$cxx -std=c++17 -Wall -Wextra -Wold-style-cast -pedantic-errors -Werror "${includes[@]/#/-I}" \
		"$program" "$PLX_BUILD_ROOT/libpollux.so" -o "$temp/exception"
	LD_LIBRARY_PATH=$PLX_BUILD_ROOT timeout 60 "$temp/exception" || {
		echo "failed: $program"
		exit 1
	}
done
