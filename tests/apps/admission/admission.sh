# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Tests of what many or hostile connections do to a listener. Sourced, with the test's arguments; the first is the folder
# of the test's programs. The test then runs in a separate network namespace, so that each port and address is free and
# nothing else connects. The namespace ends with its processes.
# shellcheck disable=SC2034

if [[ ${PLX_TEST_NAMESPACE-} != "$$" ]]; then
	unshare -rn ip link set lo up 2>/dev/null || exit 77
	PLX_TEST_NAMESPACE=$$ exec unshare -rn "$BASH" "$0" "$@"
fi
ip link set lo up
ulimit -Sn hard

# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../checks.sh"

programs=$1
provider=tcp
later_ms=2000 # than usual may a link open
[[ -z ${PLX_TEST_SOAK-} ]] || later_ms=500 # on a quiet host
descriptors=$(ulimit -Hn)

# The EAL options of each process. One that gets no CPU for a moment is not taken for dead, except on a quiet host.
eal=(--huge none --heartbeat 1s:20s)
[[ -z ${PLX_TEST_SOAK-} ]] || eal=(--huge none)

# use_ipv6: the server's address fd00:1::1, and the networks fd00:2::/48 of others.
use_ipv6()
{
	ip address add fd00:1::1/128 dev lo nodad && ip route add local fd00:2::/48 dev lo || exit 77
}

# shellcheck disable=SC2317 # called by start
# with_descriptors COUNT COMMAND...: becomes the command.
with_descriptors()
{
	ulimit -n "$1"
	exec "${@:2}"
}

# start_server KIND ADDRESS OPTION...: crowd_server, with at most `descriptors`; output in temp/server.
start_server()
{
	start server with_descriptors "$descriptors" "$programs/crowd_server" "${eal[@]}" --provider "$provider" -- --as "$1" --listen "$2" "${@:3}"
	server=$pid
}

# start_crowd N KIND ADDRESS OPTION...: crowd; output in temp/crowdN. The command in `prefix`, if any, runs it.
start_crowd()
{
	start "crowd$1" "${prefix[@]}" "$programs/crowd" "${eal[@]}" --provider "$provider" -- --as "$2" --connect "$3" "${@:4}"
}
prefix=()

# finish: end all processes and the test.
finish()
{
	server=''
	kill_off "${pids[@]}" 2>/dev/null
	exit $failed
}

# crowds_wait COUNT: until each of the processes 1 to COUNT waits for a server.
crowds_wait()
{
	for ((n = 1; n <= $1; n++)); do
		wait_until "grep -q waiting '$temp/crowd$n'" || check "the clients of process $n start" false
	done
}

# all_open TEXT COUNT: the server has seen them all at once.
all_open()
{
	wait_until "grep -q ' open after ' '$temp/server'"
	echo "$1: $(grep ' open after ' "$temp/server")"
	check "$1: all get in" "grep -q '^$2 of $2 open' '$temp/server'"
}

# start_strangers N OPTION...: strangers; output in temp/strangersN; sets `strangers`.
start_strangers()
{
	start "strangers$1" "$programs/strangers" "${@:2}"
	strangers=$pid
}

# made N COUNT: wait until the strangers have made that many connections, a multiple of 100.
made()
{
	wait_until "grep -q '^$2 made' '$temp/strangers$1' || ! kill -0 $strangers 2>/dev/null"
	grep -q "^$2 made" "$temp/strangers$1" || check "$2 strangers connect" false
}

# try_links NAME ADDRESS COUNT: connect links, one after the other; output in temp/NAME. Sets `lost` and `longest`, in ms.
try_links()
{
	start "$1" "$programs/first_try" "${eal[@]}" --provider tcp -- --connect "$2" --tries "$3"
	ends "$pid"
	read -r lost longest < <(sed -n 's/^\([0-9]*\) failed, the longest took \([0-9]*\) ms/\1 \2/p' "$temp/$1")
	lost=${lost:-$3} longest=${longest:-0}
}

# server_descriptors: how many the server has open.
server_descriptors()
{
	find "/proc/$server/fd" -mindepth 1 2>/dev/null | wc -l
}

# find_usual ADDRESS: how long a link takes while nothing else connects.
find_usual()
{
	try_links usual "$1" 3
	check 'links open while nothing else connects' "((lost == 0))"
	usual=$longest
}

# served TEXT ADDRESS COUNT: links open at the first try, at most 0.5 s later than usual.
served()
{
	try_links served "$2" "$3"
	echo "$1: $lost of $3 refused, the longest takes $longest ms (usually $usual ms)"
	((lost == 0)) || grep '^not open' "$temp/served"
	check "$1: links open at the first try" "((lost == 0 && longest < usual + later_ms))"
}
