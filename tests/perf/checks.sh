# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the tests of the bench's judgement and parts check with. Sourced; they end with `failed`. `here` has jq's modules,
# `work` is a folder.
# shellcheck disable=SC2034

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../scripts/bench" && pwd)
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ended FILE: how the last command has ended, and the text of FILE, as JSON.
ended()
{
	jq -n --argjson status $? --rawfile said "$1" '{$status, $said}'
}

# check TEXT JSON FILTER: the filter must be true of it.
check()
{
	if [[ -n $2 ]] && jq -e -L "$here" "$3" <<<"$2" >/dev/null; then # jq takes no input for true
		echo "ok: $1"
	else
		echo "FAILED: $1: $3"
		head -c 3000 <<<"$2"
		failed=1
	fi
}
