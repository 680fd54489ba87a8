#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A CPU quota smaller than the lcores is reported at the start. Needs a private control group: exits with 77 (skipped)
# if none can be made.
#
#     quota_test.sh PLX-ECHO
set -u
echo_program=$1
group=

fail()
{
	echo "quota_test.sh: $*" >&2
	exit 1
}

# Version 1, then version 2. One CPU.
make_group()
{
	local base

	for base in /sys/fs/cgroup/cpu /sys/fs/cgroup; do
		group=$base/plx-test-$$
		mkdir "$group" 2>/dev/null || continue
		if { echo 100000 >"$group/cpu.cfs_quota_us"; } 2>/dev/null ||
			{ echo '100000 100000' >"$group/cpu.max"; } 2>/dev/null; then
			return 0
		fi
		rmdir "$group"
	done
	return 1
}

make_group || exit 77
trap 'rmdir "$group"' EXIT

# in_group ARGS: plx-echo's output there.
in_group()
{
	(
		echo $BASHPID >"$group/cgroup.procs" || exit
		exec "$echo_program" "$@" --dry-run --listen 127.0.0.1:0 2>&1
	)
}

said=$(in_group -l '0@0,1@0')
[[ $said == *"grants 1.00 CPUs in every 100 ms, which is less than 2 lcores that poll;"* ]] ||
	fail "the quota is not reported: $said"
said=$(in_group -l '0@0')
[[ $said != *grants* ]] || fail "a sufficient quota is reported: $said"
