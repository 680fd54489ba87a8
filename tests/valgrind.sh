# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the tests that count instructions share. Sourced; they set `temp`, a folder.
# shellcheck disable=SC2154

# need_valgrind PROGRAM SANITIZER: ends the test, as skipped, where valgrind cannot run it. Without arguments the program
# ends with 2.
need_valgrind()
{
	local status=0

	if [[ $2 != none ]]; then
		echo "valgrind does not run programs with a sanitizer ($2)"
		exit 77
	fi
	if ! command -v valgrind >/dev/null; then
		echo 'there is no valgrind here: apt-get install valgrind'
		exit 77
	fi
	# Valgrind 3.19 gives up on what clang 14 writes for debuggers.
	valgrind --tool=none "$1" >/dev/null 2>&1 || status=$?
	if ((status != 2)); then
		echo "valgrind cannot run this program: $(valgrind --version), status $status"
		exit 77
	fi
}

# instructions FUNCTION PROGRAM [ARGUMENT...]: in all calls of the function together, which one thread alone makes. What
# the program says is in temp/log. Symbols are bound before, not in the first call.
instructions()
{
	local function=$1

	shift
	if ! LD_BIND_NOW=1 valgrind --tool=callgrind --callgrind-out-file="$temp/out" --collect-atstart=no \
		--toggle-collect="$function" "$@" >"$temp/log" 2>&1; then
		cat "$temp/log" >&2
		return 1
	fi
	sed -n 's/^totals: //p' "$temp/out"
}
