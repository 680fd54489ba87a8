#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every whole program in the documentation builds as printed, without a warning: each block of C with a main in
# README.md and the guide.
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

sanitizer=${1:-none}
least=7 # programs in the pages

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
	# The compiler may include options.
	# shellcheck disable=SC2086
	if ${CC:-cc} "${flags[@]}" "$program" "${library[@]}" -o "${program%.c}"; then
		echo "ok: $(basename "$program" .c)"
	else
		echo "FAILED: $(basename "$program" .c) does not build"
		failed=1
	fi
done

# README.md's client fails if nothing listens, and otherwise prints the answer.
hello=$(ls "$temp"/README-*[0-9] 2>/dev/null)
if [[ $sanitizer == none && -n $hello ]]; then
	if "$hello" 127.0.0.1:1 >"$temp/text" 2>&1 </dev/null; then
		echo 'FAILED: hello ends well where nobody listens'
		failed=1
	fi
	if [[ $(grep -o '127\.0\.0\.1:1' "$temp/text" | wc -l) != 1 ]]; then
		echo "FAILED: hello does not name the address that refuses once: $(cat "$temp/text")"
		failed=1
	fi
	"$PLX_BUILD_ROOT/apps/plx-echo" --listen 127.0.0.1:0 >"$temp/echo" 2>&1 </dev/null &
	echo=$!
	listening "$temp/echo"
	if ! timeout 20 "$hello" "$address" >"$temp/text" 2>&1 </dev/null || ! grep -qx hello "$temp/text"; then
		echo "FAILED: hello does not get its answer: $(cat "$temp/text")"
		failed=1
	fi
	kill "$echo"
	wait "$echo"
fi

# The example unit: its command is valid, clients can be in its group, and a wrong option does not restart it.
unit=$PLX_SOURCE_ROOT/config/pollux-echo.service
read -ra command < <(sed -n 's|^ExecStart=/usr/local/bin/||p' "$unit")
if [[ $sanitizer == none ]]; then
	timeout 20 "$PLX_BUILD_ROOT/apps/${command[0]}" "${command[@]:1}" --dry-run >"$temp/text" 2>&1 </dev/null ||
		{ echo "FAILED: ${command[*]}: $(cat "$temp/text")" && failed=1; }
fi
for line in User=pollux Group=pollux Environment=FI_PLX_SHM_GROUP=pollux RestartPreventExitStatus=2; do
	grep -qx "$line" "$unit" || { echo "FAILED: $unit lacks $line" && failed=1; }
done
if command -v systemd-analyze >/dev/null; then
	sed 's|^ExecStart=.*|ExecStart=/bin/true|' "$unit" >"$temp/pollux-echo.service"
	said=$(systemd-analyze verify --man=no "$temp/pollux-echo.service" 2>&1 | grep 'pollux-echo.service')
	[[ -z $said ]] || { echo "FAILED: $unit: $said" && failed=1; }
fi
exit $failed
