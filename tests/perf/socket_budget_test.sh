#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Instructions per message of 64 B over NetIO's sockets, and per call, with both ends on one lcore, as
# callgrind counts them. Each row has a limit, about a tenth above what it took, so that none grows unseen.
#
#     socket_budget_test.sh PROGRAM SANITIZER OPTIMIZATION
#
# OPTIMIZATION: meson's; without it there is no limit.
set -euo pipefail

# shellcheck source=tests/valgrind.sh
. "$(dirname "${BASH_SOURCE[0]}")/../valgrind.sh"

program=$1
optimization=$3
messages=3200
failed=0

need_valgrind "$program" "$2"
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

while read -r part provider limit; do
	# --turn-time: callgrind runs 50 times slower.
	export NETIO_OPTIONS="--idle poll --provider $provider --turn-time 1s"
	count=$(($(instructions send_and_receive "$program" "$part" "$messages") / messages))
	echo "$part, $provider: $count instructions, at most $limit"
	if ((count < 50 || (count > limit && ${#optimization} == 1 && optimization > 1))); then
		echo "FAILED: $part over $provider"
		failed=1
	fi
done <<-'ROWS'
	unbuffered tcp 1700
	unbuffered shm 1550
	buffered tcp 295
	buffered shm 295
	publish tcp 615
	publish shm 615
	call tcp 4750
	call shm 4450
ROWS
exit $failed
