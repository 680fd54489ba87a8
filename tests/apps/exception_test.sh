#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds and runs exception.cc. 77, skipped, without a C++ compiler.
#
#     exception_test.sh SANITIZER CC [OPTION...]
set -euo pipefail
# shellcheck source=tests/apps/cxx.sh
. "$(dirname "${BASH_SOURCE[0]}")/cxx.sh" "$@"

temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
"${cxx[@]}" -std=c++17 -Wold-style-cast -pedantic-errors "${options[@]}" "$PLX_SOURCE_ROOT/tests/apps/exception.cc" \
	"$PLX_BUILD_ROOT/libpollux.so" -o "$temp/exception"
timeout 60 "$temp/exception" 0
timeout 60 "$temp/exception" 1
