#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# libfabric's own tests of connected endpoints, fabtests, run over the modules plx_shm and plx_tcp. No package has them,
# but the source package of libfabric does.
set -uo pipefail

sanitizer=$1 drivers=$2
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
# shellcheck source=tests/apps/checks.sh
. tests/apps/checks.sh

skip()
{
	echo "skipped: $1"
	exit 77
}

[[ $sanitizer == none ]] || skip "programs cannot load a library with the sanitizer ($sanitizer)"
command -v apt-get >/dev/null || skip 'apt-get is missing'

# fetch RELEASE: the source of libfabric in temp/source; apt's own lists stay as they are.
fetch()
{
	local options=(-q -o APT::Sandbox::User=root -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$temp/apt"
		-o "Dir::State::lists=$temp/apt/lists" -o "Dir::Cache=$temp/apt/cache")
	local from

	from=$(debian_registry)
	[[ -n $from ]] || return 1
	mkdir -p "$temp"/apt/{lists,cache/archives}/partial "$temp/source"
	printf '%s\n' 'Types: deb-src' "URIs: $from" "Suites: $1" 'Components: main' \
		'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg' >"$temp/apt/source.sources"
	apt-get "${options[@]}" update >"$temp/apt.err" 2>&1 &&
		env -C "$temp" apt-get "${options[@]}" source --download-only --tar-only libfabric >>"$temp/apt.err" 2>&1 &&
		tar -C "$temp/source" --strip-components=1 -xf "$temp"/libfabric_*.orig.tar.*
}

# build PROGRAM...: with the headers of that source, whose tests need them; and the libfabric of this host. Sources of
# other kinds of memory compile to nothing.
build()
{
	local from=$temp/source/fabtests version program flags

	version=$(pkg-config --modversion libfabric)
	version=${version%.*}
	flags=(-w -O1 -D_GNU_SOURCE -DHAVE_CLOCK_GETTIME=1 -DHAVE_EPOLL=1 '-DPACKAGE_VERSION=""'
		"-DFT_FIVERSION=FI_VERSION(${version/./,})" -I"$temp" -I"$temp/source/include" -I"$from/include")
	: >"$temp/config.h"
	# It asks for a completion that fi_getinfo did not offer, before it ends.
	sed -i 's/FI_DELIVERY_COMPLETE);/FI_TRANSMIT_COMPLETE);/' "$from/common/shared.c"
	for program; do
		# It has the operations of atomics without their definitions; nothing calls them.
		cc "${flags[@]}" -o "$temp/${program##*/}" "$from/$program.c" "$from/common/shared.c" "$from"/common/hmem*.c \
			"$from/benchmarks/benchmark_shared.c" "$from/unit/common.c" -lfabric -lpthread -ldl \
			-Wl,--unresolved-symbols=ignore-in-object-files 2>"$temp/cc.err" ||
			fail "$program does not compile: $(head -n 5 "$temp/cc.err")"
	done
}

# pair PROVIDER PROGRAM [OPTION...]: a server and a client, at a free port, end with 0.
pair()
{
	local provider=$1 program=$temp/$2 text="${*:2} over $1" port

	shift 2
	for _ in {1..20}; do
		port=$((RANDOM % 12000 + 20000))
		start server timeout 100 "$program" -p "$provider" "$@" -s 127.0.0.1 -B "$port"
		wait_until "! kill -0 $pid 2>/dev/null || ss -Hltnx | grep -q '127.0.0.1:$port '"
		kill -0 "$pid" 2>/dev/null && break
	done
	timeout 100 "$program" -p "$provider" "$@" -P "$port" 127.0.0.1 >"$temp/client" 2>"$temp/client.err"
	check "$text: the client ends with 0" "(($? == 0))"
	ends_well "$text: the server" "$pid"
}

# alone PROVIDER PROGRAM: it ends with 0.
alone()
{
	timeout 100 "$temp/$2" -p "$1" >"$temp/alone.err" 2>&1
	check "$2 over $1 ends with 0" "(($? == 0))"
}

fetch "${releases##* }" || skip "no source of libfabric for ${releases##* }: $(tail -n 1 "$temp/apt.err" 2>/dev/null)"
build functional/{msg,msg_epoll,cq_data,cm_data,resmgmt_test} benchmarks/{msg_pingpong,msg_bw,rma_bw} \
	unit/{eq_test,cq_test,getinfo_test,mr_test}
((failed)) && exit 1

export FI_PROVIDER_PATH=$drivers/shm:$drivers/tcp
for provider in plx_shm plx_tcp; do
	pair $provider msg
	pair $provider msg_epoll
	pair $provider cq_data -e msg
	pair $provider cm_data
	pair $provider resmgmt_test -e msg
	pair $provider msg_pingpong -I 20 -v
	pair $provider msg_bw -I 20 -v
	for test in eq_test cq_test getinfo_test; do
		alone $provider $test
	done
done
for operation in write read writedata; do
	pair plx_tcp rma_bw -e msg -o $operation -I 20
done
alone plx_tcp mr_test
exit $failed
