#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every whole program in the documentation builds as printed, without a warning: each block of C with a main in
# README.md and the guide.
# shellcheck disable=SC2016,SC2034 # `check` expands its conditions
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

sanitizer=${1:-none}
least=8 # programs in the pages

# programs FILE: write each to a separate file, with the page's line numbers for the compiler.
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
check "the pages have ${#found[@]} programs" '((${#found[@]} >= least))'

headers=("$PLX_SOURCE_ROOT"/lib/ "$PLX_SOURCE_ROOT"/lib/*/)
flags=(-Wall -Wextra -Werror -Wno-unused-parameter "${headers[@]/#/-I}")
# A program without the sanitizer cannot be linked with a library that has one.
if [[ $sanitizer == none ]]; then
	library=("$PLX_BUILD_ROOT"/libpollux.so "-Wl,-rpath,$PLX_BUILD_ROOT" -pthread)
else
	library=(-c)
fi
for program in "${found[@]}"; do
	# The compiler may include options.
	# shellcheck disable=SC2086
	${CC:-cc} "${flags[@]}" "$program" "${library[@]}" -o "${program%.c}"
	check "$(basename "$program" .c) builds" "(($? == 0))"
done

# The program before porting and the one after it count the same.
if [[ $sanitizer == none ]]; then
	export NETIO_OPTIONS='--huge none'
	for program in "$temp"/from-netio-next-*[0-9]; do
		said=$(timeout 20 "$program" 2>"$temp/from.err" </dev/null)
		check "$(basename "$program") counts" "(($? == 0)) && [[ \$(grep -v '^port [1-9]' <<<\$said) == $'3\n2\n1' ]]"
	done
fi

# README.md's client fails if nothing listens, and otherwise prints the answer.
hello=$(ls "$temp"/README-*[0-9] 2>/dev/null)
if [[ $sanitizer == none && -n $hello ]]; then
	"$hello" --connect 127.0.0.1:1 >"$temp/hello.err" 2>&1 </dev/null
	check 'hello fails if nothing listens' "(($? != 0))"
	check 'hello names the address that refuses once' "(($(grep -o '127\.0\.0\.1:1' "$temp/hello.err" | wc -l) == 1))"
	start_server echo "$PLX_BUILD_ROOT/apps/plx-echo" --listen 127.0.0.1:0
	timeout 20 "$hello" --connect "$address" >"$temp/hello.err" 2>&1 </dev/null
	check 'hello prints its answer' "(($? == 0)) && grep -qx hello '$temp/hello.err'"
	stops_well plx-echo "$server"
fi

# The example unit: its command is valid, clients can be in its group, and a wrong option does not restart it.
unit=$PLX_SOURCE_ROOT/config/pollux-echo.service
read -ra command < <(sed -n 's|^ExecStart=/usr/local/bin/||p' "$unit")
if [[ $sanitizer == none ]]; then
	timeout 20 "$PLX_BUILD_ROOT/apps/${command[0]}" "${command[@]:1}" --dry-run >"$temp/unit.err" 2>&1 </dev/null
	check "${command[*]}" "(($? == 0))"
fi
for line in User=pollux Group=pollux Environment=FI_PLX_SHM_GROUP=pollux RestartPreventExitStatus=2; do
	check "$unit has $line" "grep -qx '$line' '$unit'"
done
if command -v systemd-analyze >/dev/null; then
	sed 's|^ExecStart=.*|ExecStart=/bin/true|' "$unit" >"$temp/pollux-echo.service"
	said=$(systemd-analyze verify --man=no "$temp/pollux-echo.service" 2>&1 | grep 'pollux-echo.service')
	check "systemd-analyze on $unit: $said" "[[ -z '$said' ]]"
fi
exit $failed
