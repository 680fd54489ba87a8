#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each option that `APP --help` shows stands in its man page, or among the common ones in pollux(7);
# and its page names no option that there is not. The usage has all that are its own.
set -uo pipefail

program=$1
name=${program##*/}
page=$PLX_SOURCE_ROOT/doc/man/$name.1
common=$PLX_SOURCE_ROOT/doc/man/pollux.7

# The long options in a text; roff writes a dash as \-.
long_options()
{
	sed 's/\\-/-/g' | grep -oE '(^|[^[:alnum:]-])--[a-z][a-z-]*' | grep -oE -- '--[a-z-]+' | sort -u
}

help=$("$program" --help </dev/null) || {
	echo "$name --help fails"
	exit 1
}
shown=$(long_options <<<"$help")
[[ -n $shown ]] || {
	echo "$name --help shows no options"
	exit 1
}
status=0
while read -r option; do
	cat "$page" "$common" | long_options | grep -qxF -- "$option" || {
		echo "$name.1: $option is missing, which $name --help shows"
		status=1
	}
done <<<"$shown"
# Only tagged paragraphs of OPTIONS define options; others' may be mentioned in the text.
while read -r option; do
	grep -qxF -- "$option" <<<"$shown" || {
		echo "$name.1: $option is described, and $name --help does not show it"
		status=1
	}
done < <(sed -n '/^\.SH OPTIONS/,/^\.SH [^O]/p' "$page" | grep -A1 '^\.TP' | long_options)
# part HEADING: of the help, up to an empty line.
part()
{
	sed -n "/^$1/,/^\$/p" <<<"$help"
}

usage=$(part Usage: | long_options)
while read -r option; do
	[[ $option =~ ^--(help|version)$ ]] || grep -qxF -- "$option" <<<"$usage" || {
		echo "$name --help: $option is not in the usage"
		status=1
	}
done < <(part Options | grep -oE '^  (-[a-zA-Z], )?--[a-z-]+' | long_options)
exit $status
