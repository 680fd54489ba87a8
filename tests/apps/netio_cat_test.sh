#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# netio-cat: what goes into one of them comes out of another, byte for byte and whole, over tcp and
# shm, however slowly it is read; what is asked for wrongly is refused; and ends of all kinds have the
# status that they should.
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

cat=$1
temp=$(mktemp -d)
pids=()
port=
# On a loaded machine a peer may say nothing for longer than by default.
heartbeat=1s:10s
trap '((${#pids[@]} == 0)) || kill -KILL "${pids[@]}" 2>/dev/null; rm -rf "$temp"' EXIT

# run NAME MODE WORD...: in the background, standard error in NAME.err; sets `pid`. Its input (not that
# of a job in the background, which is none) and
# output are the caller's.
run()
{
	local name=$1 mode=$2

	shift 2
	: >"$temp/$name.err"
	"$cat" "$mode" --huge none --provider "$provider" --heartbeat "$heartbeat" -- --host 127.0.0.1 "$@" \
		<&0 2>"$temp/$name.err" &
	pid=$!
	pids+=("$pid")
}

# listening NAME: sets `port`.
listening()
{
	wait_until "port=\$(sed -n 's/^listening on .*://p' '$temp/$1.err'); [[ -n \$port ]]" && return
	check "$1 comes up" false
	exit 1
}

# slowly FILE: takes its input into FILE, after a while that is longer than closing waits for.
slowly()
{
	sleep 2.5
	cat >"$1"
}

seq 100000 >"$temp/lines"
printf 'one\n\n  three\t\nlast, without an end' >"$temp/few"
head -c 3000000 /dev/urandom >"$temp/bytes"

# All that stands between standard input and output. ------------------------------------------

for provider in tcp shm; do
	for kind in '' --unbuffered; do
		what="$provider ${kind:-buffered}"

		run pub publish -p 0 -t 7 ${kind:+"$kind"} <"$temp/lines"
		pub=$pid
		listening pub
		run sub subscribe -p "$port" -t 7 --count 100000 >"$temp/out"
		ends "$pid"
		check "$what: subscribe --count ends with 0" "(($? == 0))"
		ends "$pub"
		check "$what: publish ends with 0" "(($? == 0))"
		check "$what: 100000 lines published" "cmp '$temp/lines' '$temp/out'"

		run recv recv -p 0 --count 100000 >"$temp/out"
		recv=$pid
		listening recv
		run send send -p "$port" ${kind:+"$kind"} <"$temp/lines"
		ends "$pid"
		check "$what: send ends with 0" "(($? == 0))"
		ends "$recv"
		check "$what: recv --count ends with 0" "(($? == 0))"
		check "$what: 100000 lines sent" "cmp '$temp/lines' '$temp/out'"
	done

	# A reader that begins late holds the sender up, which sees to it that nothing is lost.
	rm -f "$temp/slow"
	run recv recv -p 0 -e raw > >(slowly "$temp/slow")
	recv=$pid
	listening recv
	run send send -p "$port" -e raw <"$temp/bytes"
	ends "$pid"
	check "$provider: send to a slow reader ends with 0" "(($? == 0))"
	wait_until "cmp -s '$temp/bytes' '$temp/slow'"
	check "$provider: a slow reader has all that was sent" "(($? == 0))"
	kill "$recv"
	ends "$recv"
	check "$provider: recv ends with 0 by SIGTERM" "(($? == 0))"

	rm -f "$temp/slow"
	run pub publish -p 0 -e raw --block 10K <"$temp/bytes"
	pub=$pid
	listening pub
	run sub subscribe -p "$port" -t 0 -e raw > >(slowly "$temp/slow")
	sub=$pid
	ends "$pub"
	check "$provider: publish to a slow reader ends with 0" "(($? == 0))"
	wait_until "cmp -s '$temp/bytes' '$temp/slow'"
	check "$provider: a slow reader has all that was published" "(($? == 0))"
	wait_until "grep -q 'lost: ' '$temp/sub.err'"
	check "$provider: subscribe tells that the publisher is gone, and goes on" \
		"(($? == 0)) && kill -0 $sub"
	kill "$sub"
	ends "$sub"
	check "$provider: subscribe ends with 0 by SIGTERM" "(($? == 0))"
done

# To several, of which one is there late, and one is read late and holds up only itself.
for provider in tcp shm; do
	rm -f "$temp/slow"
	run a recv -p 0 --show-tag >"$temp/a.out"
	a=$pid
	listening a
	to=(--to "127.0.0.1:$port")
	run b recv -p 0 --show-tag > >(slowly "$temp/slow")
	b=$pid
	listening b
	late=$port
	to+=(--to "127.0.0.1:$port")
	run c recv -p 0
	listening c
	kill "$pid"
	ends "$pid"
	to+=(--to "127.0.0.1:$port")
	: >"$temp/push.err"
	"$cat" push --huge none --provider "$provider" --heartbeat "$heartbeat" -- "${to[@]}" -t 7 \
		<"$temp/lines" 2>"$temp/push.err" &
	push=$!
	pids+=("$push")
	wait_until "[[ -s '$temp/a.out' ]]"
	missing=$port
	run c recv -p "$port" --show-tag >"$temp/c.out"
	c=$pid
	listening c
	ends "$push"
	check "$provider: push ends with 0" "(($? == 0))"
	check "$provider: push tells who is not there" \
		"grep -q ':$missing refused .*trying again' '$temp/push.err' && grep -q ':$late connected' '$temp/push.err'"
	for pid in "$a" "$b" "$c"; do
		kill "$pid"
		ends "$pid"
		check "$provider: a receiver of it ends with 0" "(($? == 0))"
	done
	wait_until "command cat '$temp/a.out' '$temp/c.out' '$temp/slow' | cut -d ' ' -f 2 | sort -n | cmp -s - '$temp/lines'"
	check "$provider: each line was pushed to one of three" "(($? == 0))"
	check "$provider: with its tag" "! grep -qv '^0x7 ' '$temp/a.out'"
done

provider=tcp

# Encodings. ----------------------------------------------------------------------------------

# One reads slowly and says what it may miss; the other one does not, and misses nothing.
for policy in drop-old drop-new conflate; do
	rm -f "$temp/slow"
	run pub publish -p 0 -t 7 --subscribers 2 <"$temp/lines"
	pub=$pid
	listening pub
	run slow subscribe -p "$port" -t 7 --slow "$policy" --backlog 16K > >(slowly "$temp/slow")
	slow=$pid
	run fast subscribe -p "$port" -t 7 --count 100000 >"$temp/out"
	fast=$pid
	ends "$fast"
	check "$policy: beside a slow reader another one has all lines" "cmp '$temp/lines' '$temp/out'"
	ends "$pub"
	check "$policy: publish ends with 0" "(($? == 0))"
	wait_until "grep -q 'trying again' '$temp/slow.err' && [[ -s '$temp/slow' ]]"
	kill -TERM "$slow"
	ends "$slow"
	missed=$(awk '/^missed/ {sum += $2} END {print sum + 0}' "$temp/slow.err")
	wait_until "((\$(wc -l <'$temp/slow') + missed == 100000))"
	check "$policy: a slow reader has all lines but $missed, and knows of these" "(($? == 0 && missed > 1000))"
	check "$policy: publish tells the same" "grep -q '^$missed copies were not sent' '$temp/pub.err'"
	check "$policy: the lines are in order" "sort -nc '$temp/slow'"
done

# through IN OUT FILE: standard input of publish has the encoding IN, output of subscribe OUT.
through()
{
	run pub publish -p 0 -e "$1" -t 18 <"$3"
	local pub=$pid
	listening pub
	run sub subscribe -p "$port" -t 18 -e "$2" --count "$4" "${@:5}" >"$temp/out"
	ends "$pid"
	ends "$pub"
}

through text text "$temp/few" 4
check 'the last line needs no end' "{ cat '$temp/few'; echo; } | cmp - '$temp/out'"
through text hex "$temp/few" 4
check 'hex of lines' "printf '6f6e65\n\n2020746872656509\n%s\n' \
	\$(printf 'last, without an end' | od -An -v -tx1 | tr -d ' \n') | cmp - '$temp/out'"
printf '00 0aFF\n\n 6f6b \n' >"$temp/hex"
through hex raw "$temp/hex" 3
check 'bytes of hex' "printf '\0\n\377ok' | cmp - '$temp/out'"
through hex hex "$temp/hex" 3 --show-tag
check 'tags stand before messages' "printf '0x12 000aff\n0x12 \n0x12 6f6b\n' | cmp - '$temp/out'"
head -c 1500000 /dev/zero | tr '\0' x >"$temp/long"
through text text "$temp/long" 1
check 'a line of 1.5 MB' "{ cat '$temp/long'; echo; } | cmp - '$temp/out'"

for bad in '2:6f 6g:no hex digit' '2:6f 6:stands alone' '2:6 f:stands alone' '2:-:no hex digit'; do
	IFS=: read -r line text why <<<"$bad"
	run recv recv -p 0 -e hex >"$temp/out"
	recv=$pid
	listening recv
	run send send -p "$port" -e hex < <(printf 'aa\n%s\nbb\n' "$text")
	ends "$pid"
	check "hex '$text' ends with 1" \
		"(($? == 1)) && grep -q 'line $line, column .*$why' '$temp/send.err'"
	wait_until "[[ -s '$temp/out' ]]"
	check 'what came before the bad line was sent' "[[ \$(<'$temp/out') == aa ]]"
	kill "$recv"
	ends "$recv"
done

run recv recv -p 0 >"$temp/out"
recv=$pid
listening recv
run send send -p "$port" < <(head -c 17000000 /dev/zero | tr '\0' x)
ends "$pid"
check 'a line of 17 MB ends with 1' "(($? == 1)) && grep -q 'line 1: longer than 16 MiB' '$temp/send.err'"
kill "$recv"
ends "$recv"

# Tags, counts, rates. ------------------------------------------------------------------------

# Two subscribers whose subscriptions both match, and overlap, and one that gets nothing.
run pub publish -p 0 -t 0x25 --subscribers 3 <"$temp/few"
pub=$pid
listening pub
run a subscribe -p "$port" -t 0x20-0x2f -t 37 --count 4 >"$temp/a.out"
a=$pid
run b subscribe -p "$port" -t 1 -t 0x5/0xf --at-once --count 4 >"$temp/b.out"
b=$pid
run c subscribe -p "$port" -t 0x26-0xffffffffffffffff -t 0x4/0xf >"$temp/c.out"
c=$pid
ends "$a"
check 'a range' "(($? == 0)) && { cat '$temp/few'; echo; } | cmp - '$temp/a.out'"
ends "$b"
check 'a mask' "(($? == 0)) && { cat '$temp/few'; echo; } | cmp - '$temp/b.out'"
ends "$pub"
check 'publish ends with 0' "(($? == 0)) && ! grep -q 'no subscribers' '$temp/pub.err'"
kill "$c"
ends "$c"
check 'what does not match does not come' "(($? == 0)) && [[ ! -s '$temp/c.out' ]]"

run pub publish -p 0 -t 1 --count 3 <"$temp/lines"
pub=$pid
listening pub
run sub subscribe -p "$port" -t 2 >"$temp/out"
ends "$pub"
check 'messages without subscribers are told' \
	"(($? == 0)) && grep -qx '3 messages had no subscribers' '$temp/pub.err'"
kill "$pid"
ends "$pid"

run recv recv -p 0 --count 20 >"$temp/out"
recv=$pid
listening recv
began=$(date +%s%N)
run send send -p "$port" --rate 50 --count 20 <"$temp/lines"
ends "$pid"
check '--count ends send' "(($? == 0))"
took=$((($(date +%s%N) - began) / 1000000))
ends "$recv"
check "20 messages at 50 a second took $took ms, 380 at least" \
	"((took >= 360)) && head -n 20 '$temp/lines' | cmp - '$temp/out'"

# A pause of the input leaves nothing behind.
run recv recv -p 0 >"$temp/out"
recv=$pid
listening recv
run send send -p "$port" < <(
	for line in one two three; do
		echo "$line"
		wait_until "[[ \$(tail -n 1 '$temp/out') == $line ]]" && echo "$line" >>"$temp/seen"
	done
)
ends "$pid"
check 'each line comes while the input pauses, and its end is taken' \
	"(($? == 0)) && cmp '$temp/seen' '$temp/out'"

# Ends that are out of order. ------------------------------------------------------------------

run send send -p "$port" < <(sleep 60)
send=$pid
wait_until "((\$(grep -c connected '$temp/recv.err') == 2))"
kill -KILL "$recv"
ends "$recv"
ends "$send"
check 'a receiver that is killed ends send with 1' \
	"(($? == 1)) && grep -q 'ended before all was sent' '$temp/send.err'"
run send send -p "$port" <"$temp/few"
ends "$pid"
check 'nobody there ends send with 1' "(($? == 1)) && grep -q 'refused' '$temp/send.err'"

run sub subscribe -p "$port" -t 5 --count 8 >"$temp/out"
sub=$pid
wait_until "grep -q 'trying again' '$temp/sub.err'"
check 'subscribe goes on trying' "kill -0 $sub"
for round in 1 2; do
	run pub publish -p "$port" -t 5 < <(cat "$temp/few"; echo; sleep 60)
	pub=$pid
	wait_until "((\$(wc -l <'$temp/out') == 4 * $round ))"
	check "round $round: four lines more" "(($? == 0))"
	((round == 2)) || kill -KILL "$pub"
	((round == 2)) || ends "$pub"
done
ends "$sub"
check 'subscribe ends with the eighth' "(($? == 0))"
check 'it told of each new state' "grep -q '^subscribed to 0x5 at' '$temp/sub.err' && \
	grep -q '^subscription to 0x5 lost' '$temp/sub.err' && \
	grep -q '^subscription to 0x5 resumed' '$temp/sub.err'"
# Two outages, each of several attempts.
check 'and of each reason once' "((\$(grep -c refused '$temp/sub.err') <= 4))"
kill "$pub"
ends "$pub"
check 'publish that is stopped before the end of its input ends with 1' "(($? == 1))"

run pub publish -p 0 <"$temp/lines"
pub=$pid
listening pub
run sub subscribe -p "$port" -t 0 > >(head -n 3 >"$temp/out")
ends "$pid"
check 'a reader that goes ends subscribe with 1' \
	"(($? == 1)) && grep -q 'nobody reads it' '$temp/sub.err'"
ends "$pub"
check 'and its publisher with 0 or 1' "(($? <= 1))"

# Peers that are stopped, and go on, of every kind of socket at once. ---------------------------

heartbeat=200ms:6s
ones=() others=()
for kind in buffered unbuffered; do
	option=()
	[[ $kind == buffered ]] || option=(--unbuffered)
	run "recv-$kind" recv -p 0 >"$temp/out"
	ones+=("$pid")
	listening "recv-$kind"
	run "send-$kind" send -p "$port" "${option[@]}" < <(sleep 60)
	others+=("$pid")
	run "pub-$kind" publish -p 0 "${option[@]}" < <(sleep 60)
	ones+=("$pid")
	listening "pub-$kind"
	run "sub-$kind" subscribe -p "$port" -t 1 >"$temp/out"
	others+=("$pid")
	wait_until "grep -q connected '$temp/recv-$kind.err' && grep -q '^subscribed' '$temp/sub-$kind.err'"
	check "$kind: connected" "(($? == 0))"
done

# expect TEXT NAME...: each has said it.
expect()
{
	local text=$1 name

	for name in "${@:2}"; do
		wait_until "grep -q '$text' '$temp/$name-buffered.err' && grep -q '$text' '$temp/$name-unbuffered.err'"
		check "$name: $text" "(($? == 0))"
	done
}

kill -STOP "${others[@]}"
expect 'is silent' recv pub
kill -CONT "${others[@]}"
expect 'is heard again' recv pub
kill -STOP "${ones[@]}"
expect 'is silent' send sub
kill -CONT "${ones[@]}"
expect 'is heard again' send sub
kill -KILL "${ones[@]}" "${others[@]}"
for pid in "${ones[@]}" "${others[@]}"; do
	ends "$pid"
done

# What is asked for wrongly. -------------------------------------------------------------------

# refused TEXT MODE WORD...
refused()
{
	timeout 20 "$cat" "${@:2}" >"$temp/wrong.out" 2>"$temp/wrong.err" </dev/null
	check "${*:2}" "(($? == 2)) && grep -qF -- '$1' '$temp/wrong.err'"
}

where=(--host 127.0.0.1 -p 1)
refused 'as the first word' -- "${where[@]}"
refused 'give publish, subscribe, send, push or recv; did you mean publish?' publsh "${where[@]}"
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
