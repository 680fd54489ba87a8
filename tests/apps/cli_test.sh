#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Command lines of the programs: what each refuses, with status 2 and nothing on standard output; and what they print
# without running. tests/unit/eal has the parser and its texts, main_test.sh a program with every kind of option.
#
#     cli_test.sh APPS
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

PATH=$1:$PATH
to=(--connect 127.0.0.1:1)
at=(--listen 127.0.0.1:1)

# refuses TEXT COMMAND...: the text is in the error.
refuses()
{
	local said status

	said=$("${@:2}" 2>&1 >"$temp/out" </dev/null)
	status=$?
	if ((status == 2)) && [[ $said == *"$1"* && ! -s $temp/out ]]; then
		echo "ok: ${*:2}"
	else
		fail "${*:2}: status $status: $said"
	fi
}

# The EAL's options.
gives 'an option and its values' 0 '*lcore 2: CPU *, main, idle event*lcore 3: CPU *, idle adaptive:eco:learned:10%*memory: 1G pages, numa strict, *' \
	plx-echo --dry-run -l '(2-3)@0' --idle '2:event,adaptive:eco:10%' --huge 1G --numa strict --log-level error "${at[@]}"
echo 'lcores = "0@4095";' >"$temp/cpu.conf"
refuses "lcores in $temp/cpu.conf:1 0@4095: CPU 4095 " plx-echo --config "$temp/cpu.conf" "${at[@]}"
refuses "--config $temp/none.conf: no such file" plx-echo --config "$temp/none.conf" "${at[@]}"
refuses $'plx-echo: --lis\\x1b[31m: unknown option' plx-echo $'--lis\e[31m' x
refuses $'did you mean --lcores? (--help lists all)\ntry plx-echo --help' plx-echo --lcore-list 0
refuses '-l 0@4095: CPU 4095 ' plx-echo -l 0@4095 "${at[@]}"
refuses '--provider tpc: unknown provider; give auto or a driver (tcp, shm' plx-echo --provider tpc "${at[@]}"
refuses "--tcp sendbytes=1: 'sendbytes=1' is no setting; give KEY=VALUE,... with keys " plx-echo --tcp sendbytes=1 "${at[@]}"

# Addresses.
refuses '--listen ADDR is missing' plx-echo
refuses '--listen 7000: the host is missing; give HOST:PORT' plx-echo --listen 7000
refuses 'it needs no scheme; give HOST:PORT' plx-echo --listen tcp://127.0.0.1:7000
refuses '--connect 127.0.0.1:99999: bad port; give HOST:PORT' plx-ping --connect 127.0.0.1:99999
gives 'an address of another host' 1 "*listen on 192.0.2.7:0: that address is not this host's*" plx-echo --huge none --listen 192.0.2.7:0
gives 'a name that does not exist' 1 '*no.such.host.invalid:7*' plx-ping --huge none --connect no.such.host.invalid:7

refuses 'give one of --listen ADDR, --connect ADDR and --self' plx-ping
refuses 'give one of --listen ADDR, --connect ADDR' plx-ping --self "${to[@]}"
refuses '--listen answers until it is stopped; ' plx-ping "${at[@]}" --one-way
refuses '--rx-bufs is for --sink; ' plx-ping "${at[@]}" --rx-bufs 9
refuses '--process is for --connect' plx-ping "${at[@]}" --process
refuses '--spread roundrobin' plx-ping "${at[@]}" --spread roundrobin
refuses '--rx-buf 255' plx-ping "${at[@]}" --rx-buf 255
refuses '--sink, --rx-bufs and --spread are for --listen' plx-ping --self --sink
refuses '--count and --duration exclude each other' plx-ping --self --count 1 --duration 1
refuses '--rate and --interval exclude each other' plx-ping --self --rate 1 --interval 1
refuses '--size 17M' plx-ping --self --size 17M
refuses '--burst is for --one-way' plx-ping --self --burst 1
refuses '--arrival and --seed are for round trips; ' plx-ping --self --one-way --rate 9
refuses '--verify compares what comes back, ' plx-ping --self --one-way --verify
refuses '--rx-buf: with --one-way it is ' plx-ping --self --one-way --rx-buf 4K
refuses '--explain is for round trips' plx-ping --self --one-way --explain
refuses '--process makes one call after the other' plx-ping --self --process --rate 5
refuses '0 to 65536 bytes' plx-ping --self --process --size 65537

gives 'plx-info takes no EAL options' 0 $'*\n  --format text|json *\nIt takes no EAL options*' plx-info -h
refuses $'plx-info: -l: an EAL option; plx-info takes none\ntry plx-info --help' plx-info -l 0
gives 'names may be shortened' 0 '*"schema": 1,*' plx-info --doc --form json

gives 'a short run sleeps' 0 '*, main, idle event*' plx-call "${to[@]}" --list --dry-run
gives '... unless the user decides otherwise' 0 '*lcore 0: CPU 0,*, main, idle poll*' plx-call "${to[@]}" --list --dry-run --idle poll -l 0@0
refuses 'no hexadecimal digit' plx-call "${to[@]}" --method echo --hex 0g
refuses 'give pairs of them' plx-call "${to[@]}" --method echo --hex 012
refuses 'each are the request; give one' plx-call "${to[@]}" --method echo --hex 01 --data x
refuses '--list shows the methods' plx-call "${to[@]}" --list --method echo
refuses '--method NAME is missing' plx-call "${to[@]}" --data x
refuses '--method 4294967296: ' plx-call "${to[@]}" --method 4294967296
refuses 'exclude each other' plx-call "${to[@]}" --method echo --count 1 --duration 1
for wrong in '"a' '{"a" 1}' '"\x"' '01' '{"a":1}x' "$(printf '%01001d' 0 | tr 0 '[')"; do
	refuses ' at byte ' plx-call "${to[@]}" --method echo --data-json "$wrong"
done
refuses '--data-json: duplicate object key' plx-call "${to[@]}" --method echo --data-json '{"a":1,"a":2}'

refuses 'what to do is missing; give publish, subscribe, send, push or recv as the first word' netio-cat "${to[@]}"
refuses $'did you mean publish?\ntry netio-cat --help' netio-cat publsh "${to[@]}"
refuses '--listen ADDR is missing' netio-cat recv
refuses '--connect ADDR is missing' netio-cat push
refuses 'port 0; give 1 to 65535' netio-cat send --connect 127.0.0.1:0
refuses 'give a host, such as' netio-cat push --connect '*:1'
refuses '--connect 127.0.0.1:1: given twice' netio-cat push "${to[@]}" "${to[@]}"
refuses 'takes one address; give it once' netio-cat send "${to[@]}" --connect 127.0.0.1:2
refuses '--tag: not for recv; leave it out' netio-cat recv "${at[@]}" -t 1
refuses 'takes one tag' netio-cat publish "${at[@]}" -t 1-2
refuses 'takes one; give it once' netio-cat send "${to[@]}" -t 1 -t 2
refuses 'for everything give -t all' netio-cat subscribe "${to[@]}"
refuses '--tag 0/0: given twice' netio-cat subscribe "${to[@]}" -t all -t 0/0
for tag in 7-x 7-9-11 0x; do
	refuses "--tag $tag: not a tag" netio-cat subscribe "${to[@]}" -t $tag
done
refuses 'more than 64 bits' netio-cat subscribe "${to[@]}" -t 18446744073709551616
refuses 'the lesser tag first' netio-cat subscribe "${to[@]}" -t 9-7
refuses 'give 0x10/0xf0' netio-cat subscribe "${to[@]}" -t 0x11/0xf0
refuses '--show-time: not with -e raw' netio-cat recv "${at[@]}" -e raw --show-time
refuses 'which publisher a message is of' netio-cat subscribe "${to[@]}" --connect 127.0.0.1:2 -t all -e raw
refuses '--block: for -e raw' netio-cat send "${to[@]}" --block 1K

# Programs whose peer is missing end with 1, and no line names the address twice.
for command in 'plx-ping' 'plx-ping --process' 'plx-call --method 1 --deadline 1s' 'netio-throughput' 'netio-pubsub-bench' 'netio-cat send' \
	'examples/link_client --send x' 'examples/direct_client --put x' 'examples/service_client --limit 20'; do
	read -ra words <<<"$command"
	said=$(timeout -s KILL 60 "$1/${words[0]}" "${words[@]:1}" --huge none "${to[@]}" 2>&1 </dev/null)
	status=$?
	if ((status == 1)) && [[ $said == *127.0.0.1:1*refused* ]] && ! grep -qE '127.0.0.1:[0-9]+.*127.0.0.1:[0-9]+' <<<"$said"; then
		echo "ok: $command is refused"
	else
		fail "$command: status $status: $said"
	fi
done
exit $failed
