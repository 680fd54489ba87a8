#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# RDMA tests: links, NetIO and programs over libfabric's verbs provider, on the kernel's software devices, in guests
# (scripts/guest.sh). Builds in build-test/. Needs no hardware.
set -uo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build='build-test'
parts=(loop pair)

usage()
{
	cat <<-END
	Usage: scripts/test-rdma.sh [--build DIR] [loop] [pair]
	  loop         unit tests, programs and faults, on a device that reaches itself
	  pair         between two devices that a wire joins, with loss on it
	  --build DIR  what is built already (default: $build, which is built)
	Less than three minutes on two free CPUs, up to five where others use them, too; building not counted, nor a minute the
	first time, when the guest's kernel is fetched and siw is built. Status 77 if there can be no guest here.
	END
}

given=''
named=()
while (($#)); do
	case $1 in
	-h | --help)
		usage
		exit 0
		;;
	--build)
		[[ -f ${2-}/build.ninja ]] || die test-rdma.sh "--build ${2-}: no build folder" 2
		given=$2
		shift
		;;
	loop | pair) named+=("$1") ;;
	*)
		usage >&2
		die test-rdma.sh "unknown option '$1'" 2
		;;
	esac
	shift
done
((${#named[@]} == 0)) || parts=("${named[@]}")

if [[ -n $given ]]; then
	build=$given
else
	scripts/setup.sh || die test-rdma.sh 'the packages are not there; see above'
	configure "$build" >/dev/null || die test-rdma.sh "meson could not configure $build"
	meson compile -C "$build" || die test-rdma.sh 'the build failed; see above'
fi
build=$(realpath "$build")

passed=0 failed=0
for part in "${parts[@]}"; do
	echo "== $part"
	scripts/guest.sh --net "$part" --seconds 900 "$PWD/tests/rdma/$part.sh" "$build" | tee "$build/rdma-$part.txt"
	status=${PIPESTATUS[0]}
	((status != 77)) || exit 77
	counts=$(sed -n 's/^rdma: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$build/rdma-$part.txt")
	if [[ -z $counts ]]; then
		echo "test-rdma.sh: part $part did not come to its end (status $status)" >&2
		counts='0 1'
	fi
	read -r good bad <<<"$counts"
	passed=$((passed + good)) failed=$((failed + bad))
done
report counts "$passed" "$failed"
echo "test-rdma.sh: $passed passed, $failed failed"
((failed == 0))
