#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# hugepages.sh on fake nodes: all of them get their pages, or none does.
# shellcheck disable=SC2016,SC2034,SC2317 # check expands the conditions
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

nodes=$temp/devices/system/node
export PLX_SYSFS=$temp

# node ID MIB: a node with that much memory and four unused pages of 2 MiB.
node()
{
	local pool=$nodes/node$1/hugepages/hugepages-2048kB

	rm -rf "$nodes/node$1"
	mkdir -p "$pool"
	echo "Node $1 MemTotal: $(($2 * 1024)) kB" >"$nodes/node$1/meminfo"
	echo 4 >"$pool/nr_hugepages"
	echo 4 >"$pool/free_hugepages"
}

# pages ID: the number of pages in its pool.
pages()
{
	cat "$nodes/node$1/hugepages/hugepages-2048kB/nr_hugepages"
}

# expect STATUS TEXT WORD...: hugepages.sh exits with STATUS and prints TEXT.
expect()
{
	gives "hugepages.sh ${*:3}" "$1" "*$2*" "$PLX_SOURCE_ROOT/scripts/hugepages.sh" "${@:3}"
}

node 0 8192
node 1 8192
expect 0 'node 1: 512 MiB reserved' reserve 512
check 'each node has them' '(($(pages 0) == 256 && $(pages 1) == 256))'
expect 0 'node 1: 100 MiB reserved' reserve 100 --node 1
check '... or one alone' '(($(pages 0) == 256 && $(pages 1) == 50))'

# One node is smaller, lacks such pages, or gets none from the kernel: a file that refuses the number.
node 0 8192
node 1 256
expect 2 'node 1: 512 MiB would leave nothing for anything else' reserve 512
check 'a node that is too small leaves the others as they were' '(($(pages 0) == 4))'
rm -r "$nodes/node1/hugepages"
expect 1 'node 1 has no pages of 2M' reserve 512
check '... and so does one without such pages' '(($(pages 0) == 4))'
node 1 8192
ln -sf /proc/self/oom_score_adj "$nodes/node1/hugepages/hugepages-2048kB/nr_hugepages"
expect 1 'the kernel refused 2048 pages of 2M on node 1. All pools are as they were' reserve 4096
check '... and one that the kernel refuses' '(($(pages 0) == 4))'

# A kernel that has 200 pages for node 1 and, if requested, keeps those of node 0.
node 0 8192
node 1 8192
export pool_0=$nodes/node0/hugepages/hugepages-2048kB/nr_hugepages pool_1=$nodes/node1/hugepages/hugepages-2048kB/nr_hugepages
cat >"$temp/kernel" <<'END'
printf()
{
	if [[ $2 == 256 && /proc/self/fd/1 -ef $pool_1 ]]; then
		echo 200
	elif [[ $2 == 4 && -n ${keeps-} && /proc/self/fd/1 -ef $pool_0 ]]; then
		echo 256
	else
		builtin printf "$@"
	fi
}
END
export BASH_ENV=$temp/kernel
expect 1 $'node 1: asked for 512 MiB, could have 400: no more memory in pieces of\n  2M. All pools are as they were.\n  Free some memory' reserve 512
check '... and one that gets fewer' '(($(pages 0) == 4 && $(pages 1) == 4))'
export keeps=yes
expect 1 '2M. Node 0 has 256 pages and had 4.' reserve 512
check '... and gets its own back' '(($(pages 1) == 4))'
unset BASH_ENV
node 0 8192

expect 2 '--node needs a value' reserve 512 --node
expect 2 '--node needs a value' reserve 512 --node ''
expect 2 '--size needs a value' release --size
expect 2 "--node '7': no such NUMA node" release --node 7
check 'a wrong option changes nothing' '(($(pages 0) == 4))'
exit $failed
