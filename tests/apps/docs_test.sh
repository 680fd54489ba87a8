#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every whole program that the documentation shows builds as it is printed, without a warning: in
# README.md and the guide, each block of C that has a main.
set -uo pipefail

sanitizer=${1:-none}
least=7 # so many there are
failed=0
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

# programs FILE: each to a file of its own, in which the compiler finds the lines of the page.
programs()
{
	awk -v page="${1#"$PLX_SOURCE_ROOT"/}" -v base="$temp/$(basename "$1" .md)" '
		/^```c$/ { inside = 1; text = "#line " FNR + 1 " \"" page "\"\n"; at = FNR + 1; next }
		/^```/ {
			if (inside && text ~ /\nint main\(/)
				printf "%s", text >(base "-" at ".c")
			inside = 0
			next
		}
		inside { text = text $0 "\n" }
	' "$1"
}

for page in "$PLX_SOURCE_ROOT"/README.md "$PLX_SOURCE_ROOT"/doc/guide/*.md; do
	programs "$page"
done
shopt -s nullglob
found=("$temp"/*.c)
if ((${#found[@]} < least)); then
	echo "FAILED: ${#found[@]} programs were found in the pages, and there are $least"
	failed=1
fi

headers=("$PLX_SOURCE_ROOT"/lib/ "$PLX_SOURCE_ROOT"/lib/*/)
flags=(-Wall -Wextra -Werror -Wno-unused-parameter "${headers[@]/#/-I}")
# A program without the sanitizer cannot be linked with a library that has one.
if [[ $sanitizer == none ]]; then
	library=("$PLX_BUILD_ROOT"/libpollux.so "-Wl,-rpath,$PLX_BUILD_ROOT" -pthread)
else
	library=(-c)
fi
for program in "${found[@]}"; do
	# A compiler may come with options.
	# shellcheck disable=SC2086
	if ${CC:-cc} "${flags[@]}" "$program" "${library[@]}" -o "${program%.c}"; then
		echo "ok: $(basename "$program" .c)"
	else
		echo "FAILED: $(basename "$program" .c) does not build"
		failed=1
	fi
done
exit $failed
