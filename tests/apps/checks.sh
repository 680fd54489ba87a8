# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the tests of programs check with. Sourced; they set `temp`, a folder, and end with `failed`.
# shellcheck disable=SC2034,SC2154

failed=0

# check TEXT CONDITION: the last words on standard error, temp/NAME.err, of all that ran help to see why not.
check()
{
	if eval "$2"; then
		echo "ok: $1"
	else
		echo "FAILED: $1"
		tail -n 5 "$temp"/*.err 2>/dev/null
		failed=1
	fi
}

# clean_up: for a trap at EXIT; ends `server`, if there is one, and removes `temp`.
clean_up()
{
	[[ -z ${server-} ]] || { kill "$server" 2>/dev/null && ends "$server"; }
	rm -rf "$temp"
}

# wait_until CONDITION: for 30 s; returns whether it came true.
wait_until()
{
	for _ in {1..1500}; do
		eval "$1" && return 0
		sleep 0.02
	done
	return 1
}

# listening FILE [PID]: wait until the server that prints there (by default what was started last) says where it
# listens, or has ended; sets `address` and `port`. Returns whether it listens.
listening()
{
	local said pid=${2:-$!}

	wait_until "said=\$(sed -n 's/^listening on //p' '$1'); [[ -n \$said ]] || ! kill -0 $pid 2>/dev/null"
	[[ -n $said ]] || return 1
	address=$said port=${said##*:}
}

# ends PID: a child, within 60 s; returns its status.
ends()
{
	wait_until "! kill -0 $1 2>/dev/null" || wait_until "! kill -0 $1 2>/dev/null"
	kill -KILL "$1" 2>/dev/null
	wait "$1" 2>/dev/null
}
