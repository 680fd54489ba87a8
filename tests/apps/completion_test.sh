#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Bash completion: every option that a program's --help shows, commands, and the values of an option.
#
#     completion_test.sh FOLDER-OF-THE-PROGRAMS
set -uo pipefail
PATH=$1:$PATH
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
# shellcheck source=apps/completion.bash
. "$PLX_SOURCE_ROOT/apps/completion.bash"

# expect WORDS REPLY...: the completions of the last word.
expect()
{
	local words got

	read -ra words <<<"${1/%+( )/ }"
	[[ $1 != *' ' ]] || words+=('')
	shift
	COMP_CWORD=$((${#words[@]} - 1))
	_pollux "${words[0]}" "${words[-1]}" "${words[-2]}"
	got=${COMPREPLY[*]}
	if [[ $got == "$*" ]]; then
		echo "ok: ${words[*]} -> $got"
	else
		fail "${words[*]} -> $got, not $*"
	fi
}

shopt -s extglob
programs=$(complete -p | sed -n 's/^complete -F _pollux //p')
for program in $programs; do
	options=$("$program" --help </dev/null | grep -oE '^ +(-[A-Za-z], +)?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+')
	# shellcheck disable=SC2086 # words
	expect "$program --" $options
done
expect 'plx-ping --conn' --connect
expect 'plx-ping --huge ' 2M 1G none
expect 'plx-ping --numa p' prefer
expect 'plx-ping --size '
expect "plx-ping --config $PLX_SOURCE_ROOT/config/pollux.c" "$PLX_SOURCE_ROOT/config/pollux.conf"
expect 'netio-cat recv -e ' text hex raw
expect 'netio-cat pu' publish push
expect 'netio-cat push pu'

for name in "$1"/{plx,netio}-*; do
	[[ ! -f $name || $name == *-dpdk || " ${programs//$'\n'/ } " == *" ${name##*/} "* ]] ||
		fail "${name##*/} has no completion"
done
exit $failed
