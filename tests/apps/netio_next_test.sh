#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs as written for NetIO-next build unchanged, without a warning, as C and as C++, and print the right text.
# netio_compat.h turns a callback with other parameters into an error.
#
#     netio_next_test.sh SANITIZER
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

sanitizer=${1:-none}
sources=$PLX_SOURCE_ROOT/tests/apps/netio_next
export NETIO_OPTIONS='--huge none'

declare -A prints=(
	[signal]=$'fired, 0 calls\nended, 1 calls'
	[timer]=$'step 0\nstep 1\nstep 2\nstep 3'
)

# compile LANGUAGE OPTION...: without a warning, as a user of libpollux would.
compile()
{
	local headers=("$PLX_SOURCE_ROOT"/lib/ "$PLX_SOURCE_ROOT"/lib/*/)

	# The compiler may include options.
	# shellcheck disable=SC2086
	${CC:-cc} -x "$1" -Wall -Wextra -Werror -Wno-unused-parameter "${headers[@]/#/-I}" "${@:2}"
}

# A program without the sanitizer cannot be linked with a library that has one.
library=(-x none "$PLX_BUILD_ROOT/libpollux.so" "-Wl,-rpath,$PLX_BUILD_ROOT" -o)
declare -A started
for name in "${!prints[@]}"; do
	start "$name" "$PLX_BUILD_ROOT/tests/apps/netio_next_$name"
	started[$name]=$pid
	compile c++ -std=c++14 -fsyntax-only "$sources/$name.c"
	check "$name compiles as C++" "(($? == 0))"
	[[ $sanitizer == none ]] || continue
	for language in c c++; do
		compile $language "$sources/$name.c" "${library[@]}" "$temp/$name-$language.out"
		check "$name builds as $language" "(($? == 0))"
		start "$name-$language" "$temp/$name-$language.out"
		started[$name-$language]=$pid
	done
done
for name in "${!started[@]}"; do
	ends_well "$name" "${started[$name]}"
	check "$name prints the right text" "[[ \$(<'$temp/$name') == '${prints[${name%%-*}]}' ]]"
done

# wrong LANGUAGE: whether it refuses a callback of a signal that gets a number.
# shellcheck disable=SC2317 # see check
wrong()
{
	! compile "$1" -Wno-error -fsyntax-only - 2>"$temp/wrong.err" <<-'END' && grep -q '(int)' "$temp/wrong.err"
	#include "netio_compat.h"
	void on_signal(int number) {}
	void set(struct netio_signal *signal) { signal->cb = on_signal; }
	END
}

check 'a wrong callback is an error in C' 'wrong c'
check 'and in C++' 'wrong c++'
exit $failed
