# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# For tests that compile C++: sets cc and cxx, with `options`. Ends with 77, skipped, without a C++ compiler.
#
#     . cxx.sh SANITIZER CC [OPTION...]
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
options=(-Wall -Wextra -Werror -g)
for folder in "$PLX_SOURCE_ROOT"/lib/ "$PLX_SOURCE_ROOT"/lib/*/; do
	options+=("-I$folder")
done
if [[ $sanitizer != none ]]; then
	options+=("-fsanitize=$sanitizer")
fi
export LD_LIBRARY_PATH=$PLX_BUILD_ROOT
