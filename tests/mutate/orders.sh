# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Removes each memory order and each step of some files from a copy, one at a time, and checks that
# the tests then fail: by a report of ThreadSanitizer, by a failed check, or by a timeout. A mutant
# that no test notices is an error, and so is one that cannot be made.
#
# A *_orders.sh in this folder sources it and describes one library, in this order:
#
#     subject FOLDER "$@"          what is copied; then a TEXT: only mutants with it in their name
#     archive NAME WORD...         compiled once, for all mutants
#     program FILE SECONDS WORDS [ARGS]    a test; they are tried in this order
#     order_mutants FILE...        every memory order of these files
#     spare NAME REASON            an order for which another one makes up
#     unseen NAME REASON           one that C11 requires, and that nothing can show here
#     modelled NAME MODEL MACRO    one that ../model shows, without that step
#     mutant NAME FILE EDIT        a step; EDIT is a sed script
#     try_all
#
# Words are sources and options of the compiler, from the root of the tree. @ at the beginning of
# one is the copy, @@ the changed file if it is compiled separately, %NAME an archive.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
compiler=${CC:-clang-19}
TRIES_MAX=3
self=$(basename "$0")
# What mutants call to be late.
flags=(-std=gnu11 -O1 -g -w -D_GNU_SOURCE -include sched.h -include unistd.h)
orders='memory_order_(acquire|release|acq_rel|seq_cst)|PLX_(ACQUIRE|RELEASE)'

names=() files=() edits=() programs=()
declare -A reasons=() # of mutants that are not tried

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"

die()
{
	printf '%s: %s\n' "$self" "$1" >&2
	exit 2
}

# What is tried --------------------------------------------------------------------------------

subject()
{
	only=${2-}
	# One flat copy: a file is named without its folder.
	mkdir "$work/source"
	find "$root/$1" -name '*.[ch]' -exec cp -t "$work/source" {} +
	flags+=(-I"$root/lib/base" -I"$root/lib/stats" -I"$root/tests/unit")
}

# archive NAME WORD...
archive()
{
	local name=$1 word sources=() options=()

	shift
	for word; do
		case $word in
		-I*) options+=("-I$root/${word#-I}") ;;
		-*) options+=("$word") ;;
		*) sources+=("$root/$word") ;;
		esac
	done
	mkdir "$work/$name.o"
	(
		cd "$work/$name.o"
		printf '%s\0' "${sources[@]}" | xargs -0 -P "$(nproc)" -n 4 "$compiler" "${flags[@]}" "${options[@]}" -c
		ar rcs "../$name.a" ./*.o
	) || die "archive $name does not compile"
}

# program FILE SECONDS WORDS [ARGS]
program()
{
	programs+=("$1|$2|$3|${4-}")
}

mutant()
{
	names+=("$1") files+=("$2") edits+=("$3")
}

spare()
{
	reasons[$1]="spared    $1: $2"
}

unseen()
{
	reasons[$1]="unseen    $1: $2"
}

modelled()
{
	reasons[$1]="modelled  $1: $2.pml, $3"
	grep -qw "$3" "$root/tests/model/$2.pml" || die "$1: $2.pml has no $3"
	grep -qw "$3" "$root/tests/model/mutate.sh" || die "$1: tests/model/mutate.sh does not take $3 out"
}

# orders_of FILE: "line, which of its kind in it, which one in its function, function, operation,
# order" of each.
orders_of()
{
	awk -v wanted="$orders" '
		match($0, /^[a-z].*[ *][a-z_0-9]+\(/) {
			name = substr($0, 1, RLENGTH - 1)
			sub(/.*[ *]/, "", name)
			count = 0
		}
		{
			rest = $0
			while (match(rest, "atomic_[a-z_]+|" wanted)) {
				found = substr(rest, RSTART, RLENGTH)
				rest = substr(rest, RSTART + RLENGTH)
				if (found ~ /^atomic_/)
					operation = found
				else
					print NR, ++nth[NR, found], ++count, name, operation, found
			}
		}' "$work/source/$1"
}

# weaker OPERATION ORDER: what it may become. One that both acquires and releases becomes also each
# of the two, and one that is sequentially consistent what is left of it without that.
weaker()
{
	case $1,$2 in
	*load*,seq_cst) echo acquire relaxed ;;
	*store*,seq_cst) echo release relaxed ;;
	*,seq_cst) echo acq_rel relaxed ;;
	*,acq_rel) echo relaxed acquire release ;;
	*,[A-Z]*) echo RELAXED ;;
	*) echo relaxed ;;
	esac
}

# order_mutants FILE...
order_mutants()
{
	local file line nth count function operation order prefix to before

	for file; do
		before=${#names[@]}
		while read -r line nth count function operation order; do
			prefix=memory_order_
			[[ $order == PLX_* ]] && prefix=PLX_
			for to in $(weaker "$operation" "${order#"$prefix"}"); do
				mutant "$file $function $count ${order#"$prefix"} to $to" "$file" \
					"${line}s/$order/$prefix$to/$nth"
			done
		done < <(orders_of "$file")
		((${#names[@]} > before)) || die "no memory order is found in $file"
	done
}

# Trying ---------------------------------------------------------------------------------------

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
	elif (($1 == 124 || $1 == 137 || $1 == 142)); then
		echo 'it hangs'
	else
		echo "status $1"
	fi
}

# spell TEST DIR FILE WORD...: the words as the compiler takes them, in `spelt`.
spell()
{
	local test=$1 dir=$2 file=$3 word

	shift 3
	spelt=()
	for word; do
		case $word in
		# A test that includes a file has it in itself.
		@@) [[ $file != *.c || " $* " == *" @/$file "* ]] ||
			grep -qF "#include \"$file\"" "$test" || spelt+=("$dir/$file") ;;
		@*) spelt+=("$dir${word#@}") ;;
		%*) spelt+=("$work/${word#%}.a") ;;
		-I*) spelt+=("-I$root/${word#-I}") ;;
		-*) spelt+=("$word") ;;
		*) spelt+=("$root/$word") ;;
		esac
	done
}

# try DIR FILE: run the tests on the copy in DIR, of which FILE was changed. Print how one failed
# and return 0, or return 1; 2 where it does not compile.
try()
{
	local dir=$1 file=$2 test seconds words args name program spelt status

	for program in "${programs[@]}"; do
		IFS='|' read -r test seconds words args <<<"$program"
		name=$(basename "$test" .c)
		# shellcheck disable=SC2086 # words are meant to be split
		spell "$root/tests/$test" "$dir" "$file" $words
		"$compiler" "${flags[@]}" -I"$dir" "$root/tests/$test" "${spelt[@]}" -lcmocka -pthread \
			-o "$dir/$name" || return 2
		status=0
		# shellcheck disable=SC2086 # here too
		# A test may catch the first signal.
		timeout --kill-after=2 "$seconds" "${run[@]}" "$dir/$name" $args >"$dir/out" 2>&1 || status=$?
		((status == 0)) && continue
		printf '%s: %s\n' "$name" "$(how "$status" "$dir/out")"
		return 0
	done
	return 1
}

# look NUMBER: make one mutant, try it, and write what came of it in one line, and its first word. On
# a busy host a race may be missed once: what survives is tried again.
look()
{
	local name=${names[$1]} file=${files[$1]} dir=$work/$1 status why tries

	cp -r "$work/source" "$dir"
	sed -i -e "${edits[$1]}" "$dir/$file"
	if cmp -s "$work/source/$file" "$dir/$file"; then
		printf 'missing   %s: the text that it changes is not in %s\n' "$name" "$file"
		return
	fi
	for ((tries = 0; tries < TRIES_MAX; tries++)); do
		status=0
		why=$(try "$dir" "$file" 2>"$dir/errors") || status=$?
		((status == 1)) || break
	done
	case $status in
	0) printf 'killed    %s (%s)\n' "$name" "$why" ;;
	1) printf 'SURVIVED  %s\n' "$name" ;;
	*) printf 'broken    %s: it does not compile: %s\n' "$name" "$(head -n 1 "$dir/errors")" ;;
	esac
	rm -rf "$dir"
}

check_reasons()
{
	local name

	for name in "${!reasons[@]}"; do
		printf '%s\n' "${names[@]}" | grep -xF -- "$name" >/dev/null ||
			die "there is no mutant '$name': take it off the list"
	done
}

# What is whole must pass, or that a mutant fails says nothing.
try_whole()
{
	local status=0 why

	cp -r "$work/source" "$work/whole"
	why=$(try "$work/whole" none 2>"$work/errors") || status=$?
	((status == 1)) || die "the tests fail without a mutant: ${why:-$(grep -m 1 error "$work/errors")}"
}

try_all()
{
	local jobs=0 killed bad

	check_reasons
	try_whole
	: >"$work/results"
	for i in "${!names[@]}"; do
		[[ ${names[i]} == *"$only"* ]] || continue
		if [[ ${reasons[${names[i]}]-} ]]; then
			printf '%s\n' "${reasons[${names[i]}]}"
			continue
		fi
		((jobs++ < $(nproc))) || wait -n
		look "$i" | tee -a "$work/results" &
	done
	wait
	killed=$(grep -c '^killed' "$work/results" || true)
	bad=$(grep -vc '^killed' "$work/results" || true)
	printf '%s: %d mutants killed, %d not\n' "$self" "$killed" "$bad"
	((killed > 0 && bad == 0))
}
