#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each option that `APP --help` shows is in its man page, or among the common ones in pollux(7); the
# page describes no option that the program does not have; the usage names all its own options; and
# --help ends with two examples and a page to read.
#
#     man_test.sh FOLDER-OF-THE-PROGRAMS
set -uo pipefail

apps=$1
common=$PLX_SOURCE_ROOT/doc/man/pollux.7
failed=0

# The long options in a text; roff writes a dash as \-.
long_options()
{
	sed 's/\\-/-/g' | grep -oE '(^|[^[:alnum:]-])--[a-z][a-z-]*' | grep -oE -- '--[a-z-]+' | sort -u
}

# missing TEXT LESS MORE: reports each option of LESS that MORE does not have.
missing()
{
	local option

	while read -r option; do
		echo "FAILED: $name: $option $1"
		failed=1
	done < <(comm -23 <(echo "$2") <(echo "$3") | sed '/^$/d')
}

for page in "$PLX_SOURCE_ROOT"/doc/man/*.1; do
	name=$(basename "$page" .1)
	help=$("$apps/$name" --help </dev/null)
	shown=$(long_options <<<"$help")
	if [[ -z $shown ]]; then
		echo "FAILED: $name --help shows no options"
		failed=1
		continue
	fi
	missing "is in --help, and not in $name.1" "$shown" "$(cat "$page" "$common" | long_options)"
	# Only tagged paragraphs of OPTIONS define options; the text may mention those of others.
	missing "is described in $name.1, and not in --help" \
		"$(sed -n '/^\.SH OPTIONS/,/^\.SH [^O]/p' "$page" | grep -A1 '^\.TP' | long_options)" "$shown"
	missing 'is not in the usage' \
		"$(sed -n '/^Options/,/^$/p' <<<"$help" | grep -oE '^  (-[a-zA-Z], )?--[a-z-]+' |
			grep -vE -- '--(help|version)$' | long_options)" \
		"$(sed -n '/^Usage:/,/^$/p' <<<"$help" | long_options)"
	end=$(tail -n 5 <<<"$help")
	read -r _ _ man _ more <<<"$(tail -n 1 <<<"$end")"
	if [[ $(sed -n 1p <<<"$end") != Examples: || $(grep -c "^  $name " <<<"$end") != 2 || $man != "$name," ||
		! -f $PLX_SOURCE_ROOT/$more ]]; then
		echo "FAILED: $name --help does not end with two examples and a page: $end"
		failed=1
	fi
	echo "ok: $name"
done
exit $failed
