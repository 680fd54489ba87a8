#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each installed header compiles alone, in strict C and C++, with the warnings that users turn on. Each of
# their macros is used, since an unused macro may hold anything: numbers here, the others in macros.c.
#
#     alone.sh COMPILER HEADER...
set -uo pipefail

compiler=$1
headers=("${@:2}")
macros=$(dirname "${BASH_SOURCE[0]}")/macros.c
status=0

# compiles FILE OPTION...: in each language.
compiles()
{
	local language

	for language in 'c -std=c11' 'c -std=c17' 'c++ -std=c++14' 'c++ -std=c++17' 'c++ -std=c++20'; do
		[[ $language != c++* ]] || language+=' -Wold-style-cast'
		# The language is a list of options, and the compiler may include some.
		# shellcheck disable=SC2086
		$compiler -x $language -pedantic-errors -Wpedantic -Wall -Wextra -Wshadow -Werror "${includes[@]}" \
			"${@:2}" -fsyntax-only "$1" && continue
		echo "alone.sh: ${*:2} $1 does not compile as $language"
		status=1
	done
}

mapfile -t includes < <(printf '%s\n' "${headers[@]%/*}" | sort -u | sed 's/^/-I/')
for header in "${headers[@]}"; do
	compiles /dev/null -include "$header"
done
compiles "$macros"

# defined REGEX: the macros of the headers with that text after the name.
defined()
{
	sed -nE "s/^ *# *define +(\\w+)$1.*/\\1/p" "${headers[@]}" | grep -v '_H$' | sort -u |
		comm -23 - <(grep -oE '\w+' "$macros" | sort -u)
}

# What macros.c does not use must be a number.
numbers=$(mktemp)
trap 'rm -f "$numbers"' EXIT
{
	grep '^#include' "$macros"
	printf 'static const unsigned long long numbers[] = {\n'
	defined '[[:space:]]+[^[:space:]]' | sed 's/$/,/'
	printf '};\nint main(void) { return numbers[0] > 1; }\n'
} >"$numbers"
compiles "$numbers"

unused=$(defined '\(')
if [[ -n $unused ]]; then
	echo "alone.sh: use these macros of the installed headers in ${macros#"$PWD"/}:" "${unused//$'\n'/ }"
	status=1
fi
exit $status
