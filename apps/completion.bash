# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Bash completion for the programs of Pollux. Everything comes from `PROGRAM --help`, which the program prints
# from its option tables. Source this file, or let bash-completion load it after `meson install`.

_pollux()
{
	local program=$1 word=$2 before=$3 line value='' offered=()
	local option='^ +((-[A-Za-z]), +)?(--[a-z0-9-]+)( ([^ ]+))?' command="^  ${program##*/} ([a-z]+) +\["

	while IFS= read -r line; do
		if [[ $line =~ $option ]]; then
			[[ $before != "${BASH_REMATCH[3]}" && $before != "${BASH_REMATCH[2]:-none}" ]] ||
				value=${BASH_REMATCH[5]}
			offered+=("${BASH_REMATCH[3]}")
		elif [[ $line =~ $command ]] && ((COMP_CWORD == 1)); then
			offered+=("${BASH_REMATCH[1]}")
		fi
	done < <("$program" --help 2>/dev/null)

	COMPREPLY=()
	case $value in
	'') mapfile -t COMPREPLY < <(compgen -W "${offered[*]}" -- "$word") ;;
	FILE) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
	DIR) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
	[a-z0-9]*'|'*) mapfile -t COMPREPLY < <(compgen -W "${value//|/ }" -- "$word") ;;
	esac
}

complete -F _pollux plx-call plx-echo plx-info plx-params plx-perf plx-ping \
	netio-cat netio-pubsub-bench netio-recv netio-throughput
