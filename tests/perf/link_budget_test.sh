#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Instructions that a message costs over libfabric alone, and that a link adds, as callgrind counts
# them (doc/design/latency-budget.md). A message is one send and one receive, in a separate turn.
#
#     link_budget_test.sh PROGRAM SANITIZER OPTIMIZATION [PROVIDER [SIZE]]
#
# OPTIMIZATION: meson's, which says whether the limit counts.
set -euo pipefail

# shellcheck source=tests/valgrind.sh
. "$(dirname "${BASH_SOURCE[0]}")/../valgrind.sh"

program=$1
sanitizer=$2
optimization=$3
provider=${4:-tcp}
size=${5:-64}
messages=4000
looks=$((messages * 4)) # in vain: APART_LOOKS of link_budget.c
limit=260               # that a message of 64 bytes may add on tcp: so that it does not grow unseen

need_valgrind "$program" "$sanitizer"
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

# empty WAY: how often it looked in vain in the last run, where messages were made whole.
empty()
{
	sed -n "s/^$1 whole messages $messages empty //p" "$temp/log"
}

declare -A each
for way in raw link; do
	for part in messages send receive looks; do
		calls=$messages
		[[ $part != looks ]] || calls=$looks
		count=$(instructions "${way}_$part" "$program" count "$provider" "$size" "$messages")
		each[$way.$part]=$(awk -v n="$count" -v c="$calls" 'BEGIN { printf "%.1f", n / c }')
		((count >= calls * 50)) || {
			echo "${way}_$part: $count instructions in $calls calls: they were not counted"
			exit 1
		}
		vain=$(empty "$way")
		((vain <= messages / 100)) || {
			echo "$way looked $vain times in vain: that is in the figures"
			exit 1
		}
	done
done

# row TEXT RAW LINK
row()
{
	awk -v text="$1" -v raw="$2" -v link="$3" \
		'BEGIN { printf "%-32s %7.0f %7.0f %7.0f\n", text, raw, link, link - raw }'
}

# beyond PART: what it takes above a look in vain.
beyond()
{
	awk -v part="${each[$1.receive]}" -v look="${each[$1.looks]}" 'BEGIN { print part - look }'
}

printf '%-32s %7s %7s %7s\n' "$provider, $size B, instructions" raw link added
row 'send' "${each[raw.send]}" "${each[link.send]}"
row 'receive, above a look in vain' "$(beyond raw)" "$(beyond link)"
row 'turn: a look in vain' "${each[raw.looks]}" "${each[link.looks]}"
row 'a whole message' "${each[raw.messages]}" "${each[link.messages]}"

added=$(awk -v a="${each[link.messages]}" -v b="${each[raw.messages]}" 'BEGIN { printf "%.0f", a - b }')
if [[ $optimization == [0g] ]]; then
	echo "not optimized ($optimization): no limit"
elif [[ $provider != tcp || $size != 64 ]]; then
	echo 'the limit is for 64 bytes on tcp'
elif ((added > limit)); then
	echo "a message adds $added instructions: more than $limit"
	exit 1
else
	echo "a message adds $added instructions: not more than $limit"
fi
