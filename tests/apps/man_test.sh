#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The pages of the programs follow their tables of options: the first column of a page's table has the options of
# `APP --help`, with their placeholders, and no other. The EAL's are on its page. The usage names all options; --help
# ends with two examples and a page to read; and groff takes the man page that is made of the page.
#
#     man_test.sh FOLDER-OF-THE-PROGRAMS
set -uo pipefail

# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

apps=$1
eal=$PLX_SOURCE_ROOT/doc/guide/eal.md

# words: the options in the input, each once, without values.
words()
{
	grep -oE '(^|[^[:alnum:]-])--[a-z][a-z-]*' | grep -oE -- '--[a-z-]+' | sort -u
}

# rows HEADING: the rows of that part of --help, as "--size SIZE".
rows()
{
	sed -n "/^$1/,/^\$/p" <<<"$help" | sed -nE 's/^  (-[a-zA-Z], )?(--[a-z-]+( [^ ]+)?).*/\2/p' |
		grep -vxE -- '--(help|version)' | sort
}

# differ TEXT LESS MORE: reports the lines that differ.
differ()
{
	local lines

	lines=$(diff <(echo "$2") <(echo "$3") | grep '^[<>]')
	[[ -z $lines ]] || fail "$name: $1: $lines"
}

# renders PAGE NAME: groff has no complaint about the man page NAME.
renders()
{
	local complaint

	complaint=$("$PLX_SOURCE_ROOT/scripts/man.py" "$1" "$2" | groff -man -Tutf8 -ww -z 2>&1)
	[[ -z $complaint ]] || fail "$2: $complaint"
}

renders "$eal" pollux.7
help=$("$apps/plx-echo" --help </dev/null)
name=eal.md
missing=$(comm -23 <(sed -n '/^EAL options/,$p' <<<"$help" | sed -n '/^  /p' | words) <(words <"$eal"))
[[ -z $missing ]] || fail "eal.md lacks $missing"
for page in "$PLX_SOURCE_ROOT"/doc/apps/*.md; do
	name=$(basename "$page" .md)
	[[ -x $apps/$name ]] || continue
	renders "$page" "$name.1"
	help=$("$apps/$name" --help </dev/null)
	own=$(rows 'Options of')
	[[ -n $own ]] || fail "$name --help shows no options"
	differ "its page (>) and its table of options (<)" "$own" \
		"$(sed 's/\\|/\a/g' "$page" | grep -oE '^\| `-[^|]*' | tr '\a' '|' | grep -oE -- '--[a-z-]+( [^`]+)?' | sort -u)"
	differ 'its usage (>) and its table of options (<)' "$(words <<<"$own")" \
		"$(sed -n '/^Usage:/,/^$/p' <<<"$help" | words)"
	end=$(tail -n 5 <<<"$help")
	read -r _ _ man _ more <<<"$(tail -n 1 <<<"$end")"
	if [[ $(sed -n 1p <<<"$end") != Examples: || $(grep -c "^  $name " <<<"$end") != 2 || $man != "$name," ||
		! -f $PLX_SOURCE_ROOT/$more ]]; then
		fail "$name --help does not end with two examples and a page: $end"
	fi
	echo "ok: $name"
done
exit $failed
