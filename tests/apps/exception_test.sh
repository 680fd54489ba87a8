#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds and runs exception*.cc, some with a part in C. 77, skipped, without a C++ compiler.
#
#     exception_test.sh SANITIZER CC [OPTION...]
set -euo pipefail

sanitizer=$1
cc=("${@:2}")
# The C++ compiler of the same family: a sanitizer has one runtime.
cxx=("${cc[@]}")
for i in "${!cxx[@]}"; do
	name=${cxx[i]##*/}
	case $name in
	clang* | gcc* | cc) cxx[i]=$(sed -E 's/clang/clang++/; s/gcc/g++/; s/^cc$/c++/' <<<"$name") ;;
	esac
done
if [[ -n ${CXX-} && $sanitizer == none ]]; then
	read -ra cxx <<<"$CXX"
fi
if ! command -v "${cxx[0]}" >/dev/null; then
	echo "no C++ compiler: ${cxx[0]}"
	exit 77
fi
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
options=(-Wall -Wextra -Werror -g)
for folder in "$PLX_SOURCE_ROOT"/lib/ "$PLX_SOURCE_ROOT"/lib/*/; do
	options+=("-I$folder")
done
if [[ $sanitizer != none ]]; then
	options+=("-fsanitize=$sanitizer")
fi
cxx+=(-std=c++17 -Wold-style-cast -pedantic-errors "${options[@]}")
cc+=("${options[@]}" -std=gnu11 -fexceptions -Wno-unused-parameter -Wno-missing-field-initializers)
export LD_LIBRARY_PATH=$PLX_BUILD_ROOT NETIO_OPTIONS='--huge none --provider tcp'

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
