#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#| Show, reserve and release huge pages.
#| Usage: scripts/hugepages.sh [show]
#|        scripts/hugepages.sh reserve MIB [--node N] [--size 2M|1G]
#|        scripts/hugepages.sh release [--node N] [--size 2M|1G]
#|   show     print what is reserved and free on each NUMA node
#|   reserve  reserve MIB mebibytes in all on each node (or only on node N); changes nothing if a
#|            node cannot have them
#|   release  release unused pages
#| Lasts until the next boot; config/90-pollux-hugepages.conf is permanent. The last two need root.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

nodes_dir=${PLX_SYSFS:-/sys}/devices/system/node

# node_ids: the ids of the selected NUMA nodes.
node_ids()
{
	local path id

	for path in "$nodes_dir"/node[0-9]*; do
		id=${path##*/node}
		[[ -z $node || $node == "$id" ]] && printf '%s\n' "$id"
	done
	return 0
}

# pool NODE: the folder of a node's pages of the selected size.
pool()
{
	printf '%s' "$nodes_dir/node$1/hugepages/hugepages-${page_kib}kB"
}

# mib PAGES [KIB]: pages as mebibytes.
mib()
{
	printf '%s' $(($1 * ${2-$page_kib} / 1024))
}

show()
{
	local id dir kib total free

	printf '%-6s %-10s %12s %12s %12s\n' node 'page size' reserved 'in use' free
	for id in "${ids[@]}"; do
		for dir in "$nodes_dir/node$id"/hugepages/hugepages-*kB; do
			[[ -d $dir ]] || continue
			kib=${dir##*-} kib=${kib%kB} total=$(<"$dir/nr_hugepages") free=$(<"$dir/free_hugepages")
			printf '%-6s %-10s %8s MiB %8s MiB %8s MiB\n' "$id" "$((kib / 1024)) MiB" "$(mib "$total" "$kib")" \
				"$(mib $((total - free)) "$kib")" "$(mib "$free" "$kib")"
		done
	done
}

# check_node NODE PAGES: whether its pool can grow that large. Changes nothing.
check_node()
{
	local dir asked total

	dir=$(pool "$1")
	[[ -d $dir ]] || die "node $1 has no pages of $size; see: scripts/hugepages.sh show"
	asked=$(mib "$2") total=$(awk '/MemTotal:/ { print int($(NF - 1) / 1024) }' "$nodes_dir/node$1/meminfo")
	((asked <= total * 9 / 10)) ||
		die "node $1: $asked MiB would leave nothing for anything else, it has $total MiB in all;
  give less, or one node with --node. Nothing was changed" 2
	[[ -w $dir/nr_hugepages ]] ||
		die "changing the pool of node $1 needs root: run it with sudo, outside of a container"
}

changed=() # "NODE PAGES": as each pool was before

# fail_whole TEXT [ADVICE]: release what every node got. The kernel may keep some pages, so print what each pool has.
fail_whole()
{
	local node_before before file now others=''

	for node_before in "${changed[@]}"; do
		before=${node_before#* }
		file=$(pool "${node_before% *}")/nr_hugepages
		printf '%s' "$before" >"$file" 2>/dev/null || true
		now=$(<"$file")
		[[ $now == "$before" ]] || others+=" Node ${node_before% *} has $now pages and had $before."
	done
	die "$1.${others:- All pools are as they were.}${2-}"
}

# resize NODE PAGES: request PAGES on a node.
resize()
{
	local dir got

	dir=$(pool "$1")
	changed+=("$1 $(<"$dir/nr_hugepages")")
	printf '%s' "$2" >"$dir/nr_hugepages" 2>/dev/null ||
		fail_whole "the kernel refused $2 pages of $size on node $1"
	got=$(<"$dir/nr_hugepages")
	((got >= $2)) ||
		fail_whole "node $1: asked for $(mib "$2") MiB, could have $(mib "$got"): no more memory in pieces of
  $size" "
  Free some memory (as root: sync; echo 3 >/proc/sys/vm/drop_caches;
  echo 1 >/proc/sys/vm/compact_memory) and ask again, or reserve at boot:
  config/90-pollux-hugepages.conf"
}

# resize_all PAGES: every selected node, or none. Fails if more pages stay in use.
resize_all()
{
	local id got status=0

	for id in "${ids[@]}"; do
		check_node "$id" "$1"
	done
	for id in "${ids[@]}"; do
		resize "$id" "$1"
	done
	for id in "${ids[@]}"; do
		got=$(<"$(pool "$id")/nr_hugepages")
		echo "node $id: $(mib "$got") MiB reserved in pages of $size," \
			"$(mib $((got - $(<"$(pool "$id")/free_hugepages"))) ) MiB of it in use"
		((got > $1)) || continue
		echo "hugepages.sh: node $id: more than $(mib "$1") MiB are in use; end the programs that use them, then ask again" >&2
		status=1
	done
	return $status
}

command=show
if (($#)) && [[ $1 != --* ]]; then
	command=$1
	shift
fi
mib='' node='' size=2M
if [[ $command == reserve ]]; then
	mib=${1-}
	[[ $mib =~ ^[1-9][0-9]{0,8}$ ]] || die "reserve '$mib': give the mebibytes to reserve on each node, such as 512" 2
	shift
fi
while (($#)); do
	case $1 in
	--node | --size)
		[[ -n ${2-} ]] || die "$1 needs a value: --node N, --size 2M or --size 1G" 2
		[[ $1 == --node ]] && node=$2 || size=$2
		shift
		;;
	*) other_option "$1" ;;
	esac
	shift
done

case $size in
2M) page_kib=2048 ;;
1G) page_kib=1048576 ;;
*) die "--size '$size': give 2M or 1G" 2 ;;
esac
[[ -d $nodes_dir ]] || die "this kernel shows no NUMA nodes ($nodes_dir is missing)"
mapfile -t ids < <(node_ids)
((${#ids[@]})) || die "--node '$node': no such NUMA node; see: scripts/hugepages.sh show" 2

case $command in
show) show ;;
reserve) resize_all $(((mib * 1024 + page_kib - 1) / page_kib)) ;;
release) resize_all 0 ;;
help) usage ;;
*) die "unknown command '$command'; there are show, reserve and release" 2 ;;
esac
