#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# netio-cat: the input of one comes out of another byte for byte, however slowly it is read.
#
#     netio_cat_copy_test.sh PROGRAM PROVIDER
set -uo pipefail
# shellcheck source=tests/apps/netio_cat.sh
. "$(dirname "${BASH_SOURCE[0]}")/netio_cat.sh"

# Everything between standard input and output. -----------------------------------------------

for kind in '' --unbuffered; do
	what="$provider ${kind:-buffered}"

	run pub publish --listen 127.0.0.1:0 -t 7 ${kind:+"$kind"} <"$temp/lines"
	pub=$pid
	listening pub
	run sub subscribe --connect "127.0.0.1:$port" -t 7 --count 100000 >"$temp/out"
	ends "$pid"
	check "$what: subscribe --count ends with 0" "(($? == 0))"
	ends "$pub"
	check "$what: publish ends with 0" "(($? == 0))"
	check "$what: 100000 lines published" "cmp '$temp/lines' '$temp/out'"

	run recv recv --listen 127.0.0.1:0 --count 100000 >"$temp/out"
	recv=$pid
	listening recv
	run send send --connect "127.0.0.1:$port" ${kind:+"$kind"} <"$temp/lines"
	ends "$pid"
	check "$what: send ends with 0" "(($? == 0))"
	ends "$recv"
	check "$what: recv --count ends with 0" "(($? == 0))"
	check "$what: 100000 lines sent" "cmp '$temp/lines' '$temp/out'"
done

# A late reader blocks the sender, and nothing is lost.
rm -f "$temp/slow"
run recv recv --listen 127.0.0.1:0 -e raw > >(slowly "$temp/slow")
recv=$pid
listening recv
run send send --connect "127.0.0.1:$port" -e raw <"$temp/bytes"
ends "$pid"
check "$provider: send to a slow reader ends with 0" "(($? == 0))"
wait_until "cmp -s '$temp/bytes' '$temp/slow'"
check "$provider: a slow reader has all that was sent" "(($? == 0))"
kill "$recv"
ends "$recv"
check "$provider: recv ends with 0 by SIGTERM" "(($? == 0))"

rm -f "$temp/slow"
run pub publish --listen 127.0.0.1:0 -e raw --block 10K <"$temp/bytes"
pub=$pid
listening pub
run sub subscribe --connect "127.0.0.1:$port" -t 0 -e raw > >(slowly "$temp/slow")
sub=$pid
ends "$pub"
check "$provider: publish to a slow reader ends with 0" "(($? == 0))"
wait_until "cmp -s '$temp/bytes' '$temp/slow'"
check "$provider: a slow reader has all that was published" "(($? == 0))"
wait_until "grep -q 'lost: ' '$temp/sub.err'"
check "$provider: subscribe reports that the publisher left, and continues" \
	"(($? == 0)) && kill -0 $sub"
kill "$sub"
ends "$sub"
check "$provider: subscribe ends with 0 by SIGTERM" "(($? == 0))"

# Several readers: one starts late, and one reads late and only blocks itself.
rm -f "$temp/slow"
run a recv --listen 127.0.0.1:0 --show-tag >"$temp/a.out"
a=$pid
listening a
to=(--connect "127.0.0.1:$port")
run b recv --listen 127.0.0.1:0 --show-tag > >(slowly "$temp/slow")
b=$pid
listening b
late=$port
to+=(--connect "127.0.0.1:$port")
run c recv --listen 127.0.0.1:0
listening c
kill "$pid"
ends "$pid"
to+=(--connect "127.0.0.1:$port")
: >"$temp/push.err"
"$cat" push --huge none --provider "$provider" --heartbeat "$heartbeat" -- "${to[@]}" -t 7 \
	<"$temp/lines" 2>"$temp/push.err" &
push=$!
pids+=("$push")
wait_until "[[ -s '$temp/a.out' ]]"
missing=$port
run c recv --listen "127.0.0.1:$port" --show-tag >"$temp/c.out"
c=$pid
listening c
ends "$push"
check "$provider: push ends with 0" "(($? == 0))"
check "$provider: push reports the receiver that is missing" \
	"grep -q ':$missing refused .*trying again' '$temp/push.err' && grep -q ':$late connected' '$temp/push.err'"
for pid in "$a" "$b" "$c"; do
	kill "$pid"
	ends "$pid"
	check "$provider: a receiver of it ends with 0" "(($? == 0))"
done
wait_until "command cat '$temp/a.out' '$temp/c.out' '$temp/slow' | cut -d ' ' -f 2 | sort -n | cmp -s - '$temp/lines'"
check "$provider: each line was pushed to one of three" "(($? == 0))"
check "$provider: with its tag" "! grep -qv '^0x7 ' '$temp/a.out'"
exit $failed
