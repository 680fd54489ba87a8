#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each option that `APP --help` shows is on its page, or on that of the EAL; the page describes no option
# that the program does not have; the usage names all its own options; --help ends with two examples and a
# page to read; and groff takes the man page that is made of it.
#
#     man_test.sh FOLDER-OF-THE-PROGRAMS
set -uo pipefail

# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

apps=$1
common=$(<"$PLX_SOURCE_ROOT/doc/guide/eal.md")

long_options()
{
	grep -oE '(^|[^[:alnum:]-])--[a-z][a-z-]*' | grep -oE -- '--[a-z-]+' | sort -u
}

# missing TEXT LESS MORE: reports each option of LESS that MORE does not have.
missing()
{
	local option

	while read -r option; do
		fail "$name: $option $1"
	done < <(comm -23 <(echo "$2") <(echo "$3") | sed '/^$/d')
}

# renders PAGE NAME: groff has no complaint about the man page NAME.
renders()
{
	local complaint

	complaint=$("$PLX_SOURCE_ROOT/scripts/man.py" "$1" "$2" | groff -man -Tutf8 -ww -z 2>&1)
	[[ -z $complaint ]] && return
	fail "$2: $complaint"
}

renders "$PLX_SOURCE_ROOT/doc/guide/eal.md" pollux.7
for page in "$PLX_SOURCE_ROOT"/doc/apps/*.md; do
	name=$(basename "$page" .md)
	[[ -x $apps/$name ]] || continue
	renders "$page" "$name.1"
	help=$("$apps/$name" --help </dev/null)
	shown=$(long_options <<<"$help")
	if [[ -z $shown ]]; then
		fail "$name --help shows no options"
		continue
	fi
	missing "is in --help, and not in $name.md" "$shown" "$({ cat "$page" && echo "$common"; } | long_options)"
	# Only the first column of a table defines options; the text may mention those of others.
	missing "is described in $name.md, and not in --help" \
		"$(grep -oE '^\| `-[^|]*' "$page" | long_options)" "$shown"
	missing 'is not in the usage' \
		"$(sed -n '/^Options/,/^$/p' <<<"$help" | grep -oE '^  (-[a-zA-Z], )?--[a-z-]+' |
			grep -vE -- '--(help|version)$' | long_options)" \
		"$(sed -n '/^Usage:/,/^$/p' <<<"$help" | long_options)"
	end=$(tail -n 5 <<<"$help")
	read -r _ _ man _ more <<<"$(tail -n 1 <<<"$end")"
	if [[ $(sed -n 1p <<<"$end") != Examples: || $(grep -c "^  $name " <<<"$end") != 2 || $man != "$name," ||
		! -f $PLX_SOURCE_ROOT/$more ]]; then
		fail "$name --help does not end with two examples and a page: $end"
	fi
	echo "ok: $name"
done
exit $failed
