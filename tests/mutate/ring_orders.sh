#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Takes away, one at a time, each memory order and each step of lib/ring, in a copy, and looks that the
# tests fail then: by a report of ThreadSanitizer, by what they find wrong, or by an alarm where they
# hang. A mutant that no test notices is an error, and so is one that cannot be made.
#
#     tests/mutate/ring_orders.sh [TEXT]      only the mutants whose name has TEXT in it
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
only=${1-}
compiler=${CC:-clang}

# The programs that are tried, in this order, with: how much to do, and seconds until the alarm.
programs=(
	'stress/ring_stops_test.c 1000 6'
	'stress/rings_test.c 4000 60'
	'unit/ring/push_pop_test.c'
	'unit/ring/ring_test.c'
	'unit/ring/wrap_test.c'
	'unit/ring/span_test.c'
)
orders='memory_order_acquire|memory_order_release|memory_order_acq_rel|PLX_ACQUIRE|PLX_RELEASE'

# Orders that can be done without as long as another one stands: name, and the reason.
declare -A spare=(
	['multi.c claim 1 acquire to relaxed']='the compare-and-swap acquires too; see: a claim acquires nothing'
	['multi.c claim 2 acquire to relaxed']='the compare-and-swap acquires too; see: a claim acquires nothing'
	['multi.c claim 3 acq_rel to release']='the loads before acquire too; see: a claim acquires nothing'
	['multi.c claim 4 acquire to relaxed']='the compare-and-swap acquires too; see: a claim acquires nothing'
)

die()
{
	printf 'ring_orders.sh: %s\n' "$1" >&2
	exit 2
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

names=() files=() edits=()

# mutant NAME FILE EDIT: EDIT is a sed script.
mutant()
{
	names+=("$1") files+=("$2") edits+=("$3")
}

# orders_of FILE: "line, which of its kind in it, which one in its function, function, order" of each.
orders_of()
{
	awk -v orders="$orders" '
		match($0, /^[a-z].*[ *][a-z_0-9]+\(/) {
			name = substr($0, 1, RLENGTH - 1)
			sub(/.*[ *]/, "", name)
			count = 0
		}
		{
			rest = $0
			while (match(rest, orders)) {
				order = substr(rest, RSTART, RLENGTH)
				print NR, ++nth[NR, order], ++count, name, order
				rest = substr(rest, RSTART + RLENGTH)
			}
		}' "$root/lib/ring/$1"
}

# Every order of a file becomes relaxed; one that both acquires and releases also each of the two.
order_mutants()
{
	local file=$1 line nth count function order prefix weaker to

	while read -r line nth count function order; do
		prefix=memory_order_
		[[ $order == PLX_* ]] && prefix=PLX_
		weaker=(relaxed)
		[[ $order == *acq_rel ]] && weaker+=(acquire release)
		[[ $prefix == PLX_ ]] && weaker=(RELAXED)
		for to in "${weaker[@]}"; do
			mutant "$file $function $count ${order#"$prefix"} to $to" "$file" \
				"${line}s/$order/$prefix$to/$nth"
		done
	done < <(orders_of "$file")
}

for file in plx_ring.h ring.c multi.c; do
	before=${#names[@]}
	order_mutants "$file"
	((${#names[@]} > before)) || die "no memory order is found in $file"
done

mutant 'a claim acquires nothing' multi.c '/^static inline struct claim claim(/,/^}/{
	s/memory_order_acquire/memory_order_relaxed/
	s/memory_order_acq_rel/memory_order_release/
}'
mutant 'a push marks before it copies' multi.c \
	'/^\tplx_ring_copy_in(/{h;d};/^\tmark(ring, mine, 0)/G'
mutant 'a pop marks before it copies' multi.c \
	'/^\tplx_ring_copy_out(/{h;d};/^\tmark(ring, mine, MARK_EMPTY)/G'
mutant 'claims are stored, not swapped' multi.c 's/if (sole)/if (true)/'
mutant 'what was found is not handed on' multi.c 's/taken, run - taken)/taken, 0)/'
mutant 'more is handed on than was found' multi.c 's/taken, run - taken)/taken, run - taken + 1)/'
mutant 'a bulk takes a part' multi.c 's/taken == 0 || (bulk && taken < count)/taken == 0/'
mutant 'nobody looks again' multi.c 's/if (now == old)/if (true)/'
mutant 'a mark of any lap counts' multi.c \
	's/(mark & ~MARK_LENGTH) != make_word(position + run, kind)/(mark \& MARK_EMPTY) != kind/'
mutant 'a mark of either kind counts' multi.c \
	's/(mark & ~MARK_LENGTH) != make_word(position + run, kind)/mark >> POSITION_SHIFT != ((position + run) \& POSITION_MASK)/'
mutant 'a mark tells one more' multi.c 's/kind | claim.count)/kind | (claim.count + 1))/'
mutant 'a mark tells of one alone' multi.c 's/kind | claim.count)/kind | 1)/'
mutant 'the first lap has one element more' multi.c \
	'/^void multi_init/,/^}/s/= ring->capacity;/= ring->capacity + 1;/
	s/&ring->push_claim, ring->capacity, MARK_EMPTY/\&ring->push_claim, ring->capacity + 1, MARK_EMPTY/'
mutant 'the first lap has one element less' multi.c \
	'/^void multi_init/,/^}/s/MARK_EMPTY | length)/MARK_EMPTY | (length - 1))/'
mutant 'unset marks are zero' multi.c 's/make_word(i ^ 1, 0)/0/'
mutant 'the depth is noted after the mark' multi.c \
	'/^\tmark(ring, mine, MARK_EMPTY);/d;s|^\t/\* Before the mark|\tmark(ring, mine, MARK_EMPTY);\n&|'
mutant 'bursts are not cut' multi.c 's/\*count - 1 < PLX_RING_BURST_MAX/*count != 0/'
mutant 'a long bulk is cut' multi.c 's/\*count == 0 || bulk/*count == 0/'
mutant 'MPMC: a refused push is not counted' multi.c 's/atomic_fetch_add_explicit(&ring->full, 1/atomic_fetch_add_explicit(\&ring->full, 0/'
mutant 'SPSC: a push shows what it did not copy yet' plx_ring.h \
	'/^\tplx_ring_copy_in(ring, 1,/{h;d};/^\tplx_atomic_store(&ring->tail, tail + count/G'
mutant 'SPSC: a pop gives back what it did not copy yet' plx_ring.h \
	'/^\tplx_ring_copy_out(ring, 1,/{h;d};/^\tplx_atomic_store(&ring->head, head + count/G'
mutant 'SPSC: wide elements are shown before they are copied' ring.c \
	'/^\tplx_ring_copy_in(/{h;d};/^\tatomic_store_explicit(&ring->tail, tail + count/G'
mutant 'SPSC: wide elements are given back before they are copied' ring.c \
	'/^\tplx_ring_copy_out(/{h;d};/^\tatomic_store_explicit(&ring->head, head + count/G'
mutant 'SPSC: room for one more' plx_ring.h 's/PLX_ACQUIRE) + ring->capacity;/PLX_ACQUIRE) + ring->capacity + 1;/'
mutant 'SPSC: room for one less' plx_ring.h 's/PLX_ACQUIRE) + ring->capacity;/PLX_ACQUIRE) + ring->capacity - 1;/'
mutant 'SPSC: room for one more at first' ring.c 's/(uint32_t)start + attr->capacity/&+ 1/'
mutant 'SPSC: the tail is taken for one more' plx_ring.h 's/ring->tail_seen - head;/& + 1/;s/head; + 1/head + 1;/'
mutant 'SPSC: a bulk takes a part' ring.c 's/return bulk || /return /'
mutant 'SPSC: a refused push is not counted' ring.c 's/full + 1, memory/full, memory/'
mutant 'copies do not go round the end: in' plx_ring.h '/^\tmemcpy(ring->slots, from/d'
mutant 'copies do not go round the end: out' plx_ring.h '/^\tmemcpy(to + (size_t)part/d'

mutant 'copies leave out the last' plx_ring.h 's/if (count & 1)/if (false)/'
mutant 'copies leave out a pair' plx_ring.h 's/if (count & 2)/if (false)/'
mutant 'spans do not go round the end' plx_ring.h 's/parts\[1\].count = count - part/parts[1].count = 0/'

for name in "${!spare[@]}"; do
	[[ " ${names[*]} " == *" $name "* ]] || die "there is no mutant '$name': take it off the list"
done

# What is the same for all.
flags=(-std=gnu11 -O1 -g -w -D_GNU_SOURCE)
includes=(-I"$root/lib/base" -I"$root/tests/unit" -I"$root/tests/unit/ring")
run=()
# Its shadow memory leaves no room for some layouts that the kernel chooses at random.
setarch "$(uname -m)" -R true 2>/dev/null && run=(setarch "$(uname -m)" -R)
export TSAN_OPTIONS=halt_on_error=1:report_thread_leaks=0:exitcode=66

# how STATUS OUTPUT: in a few words, how a test failed.
how()
{
	local test

	test=$(sed -n 's/^\[  FAILED  \] \([a-z].*\)/\1/p' "$2" | head -n 1)
	if [[ $test ]]; then
		echo "$test"
	elif grep -q 'WARNING: ThreadSanitizer' "$2"; then
		sed -n 's/^WARNING: ThreadSanitizer: \(.*\) (pid.*/\1/p' "$2" | head -n 1
	elif (($1 == 124 || $1 == 142)); then
		echo 'it hangs'
	else
		echo "status $1"
	fi
}

# try DIR: run the tests on the ring in DIR/ring. Print how one failed and return 0, or return 1; 2
# where it does not compile.
try()
{
	local dir=$1 program args name sources seconds status

	for program in "${programs[@]}"; do
		read -r program args <<<"$program"
		name=$(basename "$program" .c)
		sources=("$root/tests/$program" "$dir/ring/ring.c" "$root/lib/base/error.c")
		# Those with threads have a copy of multi.c, with steps, in them.
		case $program in
		stress/*) sources+=(-fsanitize=thread) seconds=90 ;;
		*) sources+=("$dir/ring/multi.c") seconds=10 ;;
		esac
		"$compiler" "${flags[@]}" -I"$dir/ring" "${includes[@]}" "${sources[@]}" -lcmocka \
			-pthread -o "$dir/$name" || return 2
		status=0
		# shellcheck disable=SC2086 # words are meant to be split
		timeout "$seconds" "${run[@]}" "$dir/$name" $args >"$dir/out" 2>&1 || status=$?
		((status == 0)) && continue
		printf '%s: %s\n' "$name" "$(how "$status" "$dir/out")"
		return 0
	done
	return 1
}

# look NUMBER: make one mutant, try it, and write what came of it in one line, and its first word.
look()
{
	local name=${names[$1]} file=${files[$1]} dir=$work/$1 status=0 why

	mkdir "$dir"
	cp -r "$root/lib/ring" "$dir/ring"
	sed -i -e "${edits[$1]}" "$dir/ring/$file"
	if cmp -s "$root/lib/ring/$file" "$dir/ring/$file"; then
		printf 'missing   %s: the text that it changes is not in %s\n' "$name" "$file"
		return
	fi
	why=$(try "$dir" 2>"$dir/errors") || status=$?
	case $status in
	0) printf 'killed    %s (%s)\n' "$name" "$why" ;;
	1) printf 'SURVIVED  %s\n' "$name" ;;
	*) printf 'broken    %s: it does not compile: %s\n' "$name" "$(head -n 1 "$dir/errors")" ;;
	esac
	rm -rf "$dir"
}

# What is whole must pass, or that a mutant fails says nothing.
mkdir "$work/whole"
cp -r "$root/lib/ring" "$work/whole/ring"
status=0
why=$(try "$work/whole") || status=$?
((status == 1)) || die "the tests fail without a mutant: ${why:-they do not compile}"

jobs=0
for i in "${!names[@]}"; do
	[[ ${names[i]} == *"$only"* ]] || continue
	if [[ ${spare[${names[i]}]-} ]]; then
		printf 'spared    %s: %s\n' "${names[i]}" "${spare[${names[i]}]}"
		continue
	fi
	((jobs++ < $(nproc))) || wait -n
	look "$i" | tee -a "$work/results" &
done
wait
killed=$(grep -c '^killed' "$work/results" || true)
bad=$(grep -vc '^killed' "$work/results" || true)
printf 'ring_orders.sh: %d mutants killed, %d not\n' "$killed" "$bad"
((killed > 0 && bad == 0))
