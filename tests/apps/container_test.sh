#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Restrictions of containers: no privileges, a read-only root, few CPUs, no view of other processes.
set -uo pipefail

apps=$1
run=("$apps/plx-ping" --huge none --log-level error --self -- --count 100)
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

unshare -Urm true 2>/dev/null || exit 77

# works TEXT COMMAND...: a round trip to another process.
works()
{
	timeout -s KILL 60 "${@:2}" >"$temp/out" 2>"$temp/run.err"
	check "$1" "(($? == 0)) && grep -q '100 full round trips' '$temp/out'"
}

works 'in a user namespace' unshare -Ur "${run[@]}"
works 'without any capability' unshare -Ur setpriv --bounding-set=-all --inh-caps=-all "${run[@]}"
# shellcheck disable=SC2016 # the inner shell's
works 'where no folder can be written' unshare -Urm "$BASH" -c '
	mount -o remount,bind,ro / 2>/dev/null
	for folder in /tmp /run /dev/shm /var; do
		mount --bind "$folder" "$folder" && mount -o remount,bind,ro "$folder"
	done 2>/dev/null
	for folder in / /tmp /run /dev/shm /var; do
		touch "$folder/written-$$" 2>/dev/null || continue
		rm "$folder/written-$$"
		echo "$folder can be written" >&2
		exit 1
	done
	exec "$@"' sh "${run[@]}"
works 'as the first process of a PID namespace' unshare -Urpf --mount-proc "${run[@]}"
cpu=$(taskset -cp $$ | sed 's/.*[ ,-]//')
works 'on the one CPU of a cpuset' taskset -c "$cpu" "${run[@]}"

# Claims of other network namespaces: seen in /proc, unless the container hides the other processes.
unshare -Urn "$apps/plx-echo" --huge none --log-level error --listen '*:0' >"$temp/echo.out" 2>"$temp/echo.err" &
pids+=($!)
wait_until "[[ -s '$temp/echo.out' ]]"
unshare -Urn "$apps/plx-echo" --log-level error --dry-run --listen '*:0' >"$temp/seen.out" 2>"$temp/seen.err"
check 'a dry run shows the claims of another container' \
	"grep -q '^CPU .*; those of other network namespaces claim ' '$temp/seen.out'"
unshare -Urnpf --mount-proc "$apps/plx-echo" --log-level error --dry-run --listen '*:0' >"$temp/blind.out" \
	2>"$temp/blind.err"
check 'a dry run says that others are hidden' "grep -q '; this PID namespace hides other containers' '$temp/blind.out'"
unshare -Urnpf --mount-proc "$apps/plx-info" >"$temp/info.out" 2>"$temp/info.err"
check 'so does plx-info' "grep -q 'those of other containers are hidden; lcores look from CPU [0-9]' '$temp/info.out'"
exit $failed
