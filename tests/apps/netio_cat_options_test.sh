#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# netio-cat: wrong options are refused.
set -uo pipefail
# shellcheck source=tests/apps/netio_cat.sh
. "$(dirname "${BASH_SOURCE[0]}")/netio_cat.sh"

# What is asked for wrongly. -------------------------------------------------------------------

# refused TEXT MODE WORD...
refused()
{
	timeout 20 "$cat" "${@:2}" >"$temp/wrong.out" 2>"$temp/wrong.err" </dev/null
	check "${*:2}" "(($? == 2)) && grep -qF -- '$1' '$temp/wrong.err'"
}

where=(--host 127.0.0.1 -p 1)
refused 'as the first word' -- "${where[@]}"
refused 'publsh: unknown word; give publish, subscribe, send, push or recv; did you mean publish?' publsh "${where[@]}"
refused 'did you mean subscribe?' subscrib tcp://127.0.0.1:7000
refused 'it needs no scheme' recv --host tcp://127.0.0.1 -p 7000
for host in ::1 '[::1]' 127.0.0.1; do
	timeout 20 "$cat" recv --host "$host" --dry-run -p 7000 >"$temp/right.out" 2>"$temp/right.err" </dev/null
	check "--host $host" '(($? == 0))'
done
refused '--host HOST is missing' recv -p 1
refused '-p PORT is missing' recv --host 127.0.0.1
refused '-p 65536: out of range' recv --host 127.0.0.1 -p 65536
refused 'a free port' send --host 127.0.0.1 -p 0
refused '-t TAG is missing' subscribe "${where[@]}"
refused 'not for recv' recv "${where[@]}" -t 1
refused 'takes one tag' publish "${where[@]}" -t 1-2
refused 'takes one; give it once' send "${where[@]}" -t 1 -t 2
refused 'given twice' subscribe "${where[@]}" -t 1 -t 0x1
refused 'with -e raw' recv "${where[@]}" -e raw --show-tag
refused 'for -e raw' send "${where[@]}" --block 1K
refused 'out of range; give 1 to 1000000' send "${where[@]}" --rate 1000001
refused 'give one of: text, hex, raw' send "${where[@]}" -e base64
for tag in x 0x 7- -7 7-x 7-9-11 7/ 1/2/3 ' 7' 7.5; do
	refused "--tag $tag: not a tag" subscribe "${where[@]}" "--tag=$tag"
done
refused '--to HOST:PORT is missing' push
refused '--to 127.0.0.1: ' push --to 127.0.0.1
refused 'port 0; give 1 to 65535' push --to 127.0.0.1:0
refused 'give the host of a receiver' push --to '*:1'
refused 'given twice' push --to 127.0.0.1:1 --to 127.0.0.1:1
refused '--host: not for push' push --to 127.0.0.1:1 --host 127.0.0.1
refused '--port: not for push' push --to 127.0.0.1:1 -p 1
refused '--unbuffered: not for push' push --to 127.0.0.1:1 --unbuffered
refused '--to: not for send' send "${where[@]}" --to 127.0.0.1:1
refused '--at-most-once: not for send' send "${where[@]}" --at-most-once
refused 'takes one tag' push --to 127.0.0.1:1 -t 1-2
refused 'more than 64 bits' subscribe "${where[@]}" -t 18446744073709551616
refused 'more than 64 bits' subscribe "${where[@]}" -t 0-0x10000000000000000
refused 'the lesser tag first' subscribe "${where[@]}" -t 9-7
refused 'give 0x10/0xf0' subscribe "${where[@]}" -t 0x11/0xf0
exit $failed
