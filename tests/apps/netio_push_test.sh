#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Workers killed and stopped at random moments, one over tcp and two over shm: each job is done, within a second of the
# event.
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

examples=$PLX_BUILD_ROOT/apps/examples
sanitizer=${1:-none}
jobs=24000 # lasts longer than it takes to find both workers, also on a busy host

# Three workers of different speed, in `workers`, and the giver of jobs, in `giver`.
start_farm()
{
	local i=0 ports=() provider

	workers=()
	for provider in tcp auto auto; do
		export NETIO_OPTIONS="--huge none --idle event --provider $provider"
		start_server "work$i" "$examples/netio_pull" 0 $((150 << i))
		workers+=("$pid")
		ports+=("$port")
		((++i))
	done
	start give "$examples/netio_push" $jobs "${ports[@]}"
	giver=$pid
	wait_until "says 3 ' connected\$'"
}

# says COUNT WORDS: whether the giver has printed WORDS that often.
# shellcheck disable=SC2317 # see check and wait_until
says()
{
	(($(grep -c "$2" "$temp/give.err") == $1))
}

# all_up_to NUMBER: whether all these jobs are done.
# shellcheck disable=SC2317
all_up_to()
{
	command cat "$temp"/work? | awk -v last="$1" \
		'$1 <= last && !seen[$1]++ { count++ } END { exit count < last + 1 }'
}

# hit SIGNAL WORKER WHAT: at a random moment; the others must get its share within 3 s (0.6 s on a quiet host).
hit()
{
	local last begin took

	sleep "0.$(printf %03d $((100 + RANDOM % 200)))"
	kill -"$1" "${workers[$2]}"
	[[ $1 != KILL ]] || wait "${workers[$2]}" 2>/dev/null
	begin=$(date +%s%N)
	last=$(command cat "$temp"/work? | sort -n | tail -n 1)
	wait_until "all_up_to $last"
	check "$3: no job is left" "(($? == 0))"
	took=$((($(date +%s%N) - begin) / 1000000))
	# Time taken by a sanitizer does not count.
	[[ $sanitizer != none ]] || check "$3: within 3 s ($took ms)" "((took < 3000))"
}

first=$((RANDOM % 3)) second=$(((first + 1) % 3))
start_farm
hit KILL $first "worker $first killed"
hit STOP $second "worker $second stopped"
wait_until "says 2 ' gone: .* jobs go to others'"
check 'the giver reports it' "(($? == 0))"
ends "$giver"
check 'all jobs are done in the end' "(($? == 0)) && grep -q '^$jobs of $jobs jobs done' '$temp/give' && all_up_to $((jobs - 1))"
exit $failed
