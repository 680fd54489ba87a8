#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# netio-cat: wrong options are refused.
set -uo pipefail
# shellcheck source=tests/apps/netio_cat.sh
. "$(dirname "${BASH_SOURCE[0]}")/netio_cat.sh"

# refused TEXT MODE WORD...
refused()
{
	timeout 20 "$cat" "${@:2}" >"$temp/wrong.out" 2>"$temp/wrong.err" </dev/null
	check "${*:2}" "(($? == 2)) && grep -qF -- '$1' '$temp/wrong.err'"
}

where=(--connect 127.0.0.1:1)
at=(--listen 127.0.0.1:1)
refused 'as the first word' -- "${where[@]}"
refused 'publsh: unknown word; give publish, subscribe, send, push or recv; did you mean publish?' publsh "${where[@]}"
refused 'did you mean subscribe?' subscrib tcp://127.0.0.1:7000
refused 'it needs no scheme' recv --listen tcp://127.0.0.1:7000
# dry WORD...: recv accepts the words; its messages are in wrong.err.
dry()
{
	timeout 20 "$cat" recv "$@" --dry-run >"$temp/wrong.out" 2>"$temp/wrong.err" </dev/null
	check "recv $*" '(($? == 0))'
}
for address in '[::1]:7000' '*:0' 127.0.0.1:7000; do
	dry --listen "$address"
done
refused '--listen ADDR is missing' recv
refused '--connect ADDR is missing' send
refused 'port 0; give 1 to 65535' send --connect 127.0.0.1:0
refused 'takes one address; give it once' send "${where[@]}" --connect 127.0.0.1:2
refused 'not for recv' recv "${at[@]}" -t 1
refused 'takes one tag' publish "${at[@]}" -t 1-2
refused 'takes one tag' publish "${at[@]}" -t all
refused 'for everything give -t all' subscribe "${where[@]}"
refused '--tag 0/0: given twice' subscribe "${where[@]}" -t all -t 0/0
refused '--connect 127.0.0.1:1: given twice' subscribe "${where[@]}" "${where[@]}" -t all
refused 'takes one; give it once' send "${where[@]}" -t 1 -t 2
refused 'given twice' subscribe "${where[@]}" -t 1 -t 0x1
for shown in tag time; do
	refused "--show-$shown: not with -e raw" recv "${at[@]}" -e raw --show-$shown
done
refused '--show-publisher: not with -e raw' subscribe "${where[@]}" -t all -e raw --show-publisher
refused 'which publisher a message is of' subscribe "${where[@]}" --connect 127.0.0.1:2 -t all -e raw
refused '--show-publisher: not for recv' recv "${at[@]}" --show-publisher
refused '--show-time: not for send' send "${where[@]}" --show-time
refused '--stats: not for publish' publish "${at[@]}" --stats
refused 'for -e raw' send "${where[@]}" --block 1K
refused 'out of range; give 1 to 1000000' send "${where[@]}" --rate 1000001
refused 'give one of: text, hex, raw' send "${where[@]}" -e base64
for tag in x 0x 7- -7 7-x 7-9-11 7/ 1/2/3 ' 7' 7.5; do
	refused "--tag $tag: not a tag" subscribe "${where[@]}" "--tag=$tag"
done
refused '--connect ADDR is missing' push
refused '--connect 127.0.0.1: ' push --connect 127.0.0.1
refused 'port 0; give 1 to 65535' push --connect 127.0.0.1:0
refused 'give a host, such as' push --connect '*:1'
refused 'given twice' push "${where[@]}" "${where[@]}"
refused '--listen: not for push' push "${at[@]}"
refused '--connect: not for recv' recv "${where[@]}"
refused '--unbuffered: not for push' push "${where[@]}" --unbuffered
refused '--at-most-once: not for send' send "${where[@]}" --at-most-once
refused 'takes one tag' push "${where[@]}" -t 1-2
refused 'more than 64 bits' subscribe "${where[@]}" -t 18446744073709551616
refused 'more than 64 bits' subscribe "${where[@]}" -t 0-0x10000000000000000
refused 'the lesser tag first' subscribe "${where[@]}" -t 9-7
refused 'give 0x10/0xf0' subscribe "${where[@]}" -t 0x11/0xf0
exit $failed
