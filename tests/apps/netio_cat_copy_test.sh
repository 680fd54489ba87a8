#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# netio-cat: the input of one comes out of another byte for byte, however slowly it is read.
#
#     netio_cat_copy_test.sh PROGRAM PROVIDER
set -uo pipefail
# shellcheck source=tests/apps/netio_cat.sh
. "$(dirname "${BASH_SOURCE[0]}")/netio_cat.sh"

for kind in '' --unbuffered; do
	what="$provider ${kind:-buffered}"

	# Two subscribers, one of them over TCP.
	provider=auto serve pub publish -t 7 --subscribers 2 ${kind:+"$kind"} <"$temp/lines"
	run sub subscribe --connect "127.0.0.1:$port" -t 7 --slow block --count 100000 >"$temp/out"
	provider=tcp run sub_tcp subscribe --connect "127.0.0.1:$port" -t 7 --slow block --count 100000 >"$temp/out.tcp"
	for name in sub sub_tcp pub; do
		ends_well "$what" "$name"
	done
	check "$what: 100000 lines published" "cmp '$temp/lines' '$temp/out' && cmp '$temp/lines' '$temp/out.tcp'"

	# A late reader blocks the sender, and nothing is lost.
	rm -f "$temp/slow"
	serve recv recv -e raw > >(slowly "$temp/slow")
	run send send --connect "127.0.0.1:$port" -e raw --block 10K ${kind:+"$kind"} <"$temp/bytes"
	ends_well "$what, slow reader" send
	wait_until "cmp -s '$temp/bytes' '$temp/slow'"
	check "$what: a slow reader has all that was sent" "(($? == 0))"
	stop recv
	check "$what: recv ends with 0 by SIGTERM" "(($? == 0))"
done

# Several receivers: one starts late, and one reads late and only blocks itself.
rm -f "$temp/slow"
serve a recv --show-tag >"$temp/a.out"
to=(--connect "127.0.0.1:$port")
serve b recv --show-tag > >(slowly "$temp/slow")
late=$port
to+=(--connect "127.0.0.1:$port")
serve c recv
missing=$port
stop c
to+=(--connect "127.0.0.1:$port")
run push push "${to[@]}" -t 7 <"$temp/lines"
wait_until "[[ -s '$temp/a.out' ]]"
run c recv --listen "127.0.0.1:$missing" --show-tag >"$temp/c.out"
listening c
ends_well "$provider" push
check "$provider: push reports the receiver that is missing" \
	"grep -q ':$missing refused .*trying again' '$temp/push.err' && grep -q ':$late .*connected' '$temp/push.err'"
for name in a b c; do
	stop $name
done
wait_until "command cat '$temp/a.out' '$temp/c.out' '$temp/slow' | cut -d ' ' -f 2 | sort -n | cmp -s - '$temp/lines'"
check "$provider: each line was pushed to one of three" "(($? == 0))"
check "$provider: with its tag" "! grep -qv '^0x7 ' '$temp/a.out'"
exit $failed
