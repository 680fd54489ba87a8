#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The results in doc/results: each report is what bench.sh writes from its summary, and each row of figures in README.md is in
# the report that README.md names.
set -uo pipefail

# shellcheck source=tests/perf/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
root=$here/../..

# compare TEXT WANTED GOT
compare()
{
	if [[ $2 == "$3" ]]; then
		echo "ok: $1"
	else
		echo "FAILED: $1"
		diff <(echo "$2") <(echo "$3")
		failed=1
	fi
}

for summary in "$root"/doc/results/*/summary.json; do
	report=${summary%/*}/report.md
	compare "${report#"$root/"} is what its summary says" \
		"$(jq -r -L "$here" -f "$here/markdown.jq" "$summary")" "$(<"$report")"
done

# Of README.md's section: rows with a figure.
section=$(sed -n '/^## How fast/,/^## /p' "$root/README.md")
named=$(grep -oE 'doc/results/[^)]*/report\.md' <<<"$section" | head -n 1)
compare 'README.md names a report' 1 "$([[ -n $named && -f $root/$named ]] && echo 1)"
rows=$(grep -E '^\|.*[0-9]' <<<"$section" | grep -v '^| full\|^| messages' | tr -d '*')
count=$(grep -c . <<<"$rows")
compare "README.md has rows of figures ($count)" 1 $((count >= 10))
missing=$(grep -vxFf "$root/$named" <<<"$rows")
compare "they are in $named" '' "$missing"
exit $failed
