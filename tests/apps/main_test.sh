#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# main.c, a program with plx_app_start, compiles as C and as C++ without a warning, runs, and answers as documented.
# Without a C++ compiler it is skipped.
#
#     main_test.sh SANITIZER CC [OPTION...]
# shellcheck disable=SC2016 # `check` expands its conditions
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
# shellcheck source=tests/apps/cxx.sh
. "$(dirname "${BASH_SOURCE[0]}")/cxx.sh" "$@"

strict=("${options[@]}" -Wshadow -pedantic-errors)
for language in c11 c++14 c++20; do
	compiler=("${cc[@]}" -x c)
	[[ $language == c1* ]] || compiler=("${cxx[@]}" -x c++ -Wold-style-cast)
	"${compiler[@]}" "-std=$language" "${strict[@]}" "$PLX_SOURCE_ROOT/tests/apps/main.c" -x none \
		"$PLX_BUILD_ROOT/libpollux.so" -o "$temp/hello-$language" -Wl,-rpath-link,"$PLX_BUILD_ROOT"
	check "main.c compiles as $language" "(($? == 0))"
	gives "its table has all values ($language)" 0 \
		$'*quiet 1 title \'\' listen a:1 count 1 of 7 size 4096 pause 2000 colour green\ntag x\ntag -y' \
		"$temp/hello-$language" -q --title '' --listen a:1 -n 7 --size 4K -tx --pause 2us --colour green --tag=-y
done

# A wrong type of the variable does not compile.
sed 's/&address/\&size_bytes/' "$PLX_SOURCE_ROOT/tests/apps/main.c" >"$temp/wrong.c"
for language in c11 c++17; do
	compiler=("${cc[@]}" -x c)
	[[ $language == c1* ]] || compiler=("${cxx[@]}" -x c++)
	check "a variable of another type is refused as $language" \
		"! '${compiler[0]}' ${compiler[*]:1} -std=$language ${strict[*]} -fsyntax-only '$temp/wrong.c' 2>'$temp/wrong.err'"
done

hello=$temp/hello-c11
gives 'options that are not given keep their defaults' 1 \
	$'*quiet 0 title \'none\' listen a:1 count 0 of 1 size 64 pause 0 colour red\nhello-c11: a failure' "$hello" --listen a:1
gives '--help has the options and no empty part' 0 \
	$'hello-c11\n\nUsage:\n  hello-c11 \[EAL options\] -- *--listen ADDR*\n\nOptions of hello-c11:\n  -q, --quiet*  -h, --help  *this help' \
	"$hello" --help --nonsense
gives "--version has the program's and Pollux's" 0 'hello-c11 1.2 (Pollux [0-9]*.*.*, libfabric *)' "$hello" -V
gives 'a dry run needs the required option too' 2 $'hello-c11: --listen ADDR is missing\ntry *' \
	"$hello" --dry-run
gives '--dry-run runs nothing' 0 $'lcore 0: CPU *\nmemory: ordinary pages, *self-test: *' "$hello" --dry-run --log-level error --listen a:1
gives "the command line overrides the program's settings" 0 '*memory: 1G pages,*' "$hello" --dry-run --huge 1G --listen a:1
gives 'check() refuses with the usage' 2 $'hello-c11: --count 13: give another\ntry hello-c11 --help' \
	"$hello" --listen a:1 --count 13
gives 'words that are not options are refused' 2 $'hello-c11: file: not an option*\ntry hello-c11 --help' \
	"$hello" --listen a:1 file
"$hello" -q --listen a:1 >/dev/full 2>"$temp/full.err"
check 'lines that are lost are an error' \
	"(($? == 1)) && grep -qx 'hello-c11: standard output: No space left on device' '$temp/full.err'"

# A program that says nothing about itself.
cat >"$temp/bare.c" <<'END'
#include "plx_app.h"
int main(int argc, char **argv)
{
	static const struct plx_app app;
	int status = plx_app_start(argc, argv, &app);
	return status == PLX_APP_RUN ? plx_app_finish(&app, 0) : status;
}
END
"${cc[@]}" -std=c11 "${strict[@]}" "$temp/bare.c" "$PLX_BUILD_ROOT/libpollux.so" -o "$temp/bare" \
	-Wl,-rpath-link,"$PLX_BUILD_ROOT"
gives 'without a table it starts and ends' 0 '*' "$temp/bare" --huge none
gives 'and refuses any other option' 2 $'bare: --listen: unknown option*\ntry bare --help' "$temp/bare" --listen a:1
exit $failed
