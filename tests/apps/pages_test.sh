#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every file, heading and test that a documentation page names exists.
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

# External names, or files made by the reader: PAGE NAME.
exceptions='doc/design/receives.md verbs_cm.c
doc/design/receives.md verbs_cq.c
doc/design/receives.md verbs_ep.c
doc/design/receives.md verbs_info.c
doc/design/receives.md xnet.h
doc/design/receives.md xnet_cq.c
doc/design/receives.md xnet_progress.c
doc/design/receives.md xnet_srx.c
doc/getting-started.md hello.c'

# missing FOLDER: names in its pages that do not exist.
missing()
{
	local pages

	cd "$1" || exit
	find . -type d \( -name .git -o -name 'build*' \) -prune -o -type f -print | sed 's|^\./||' >"$temp/files"
	mapfile -t pages < <(grep -E '^((README|CONTRIBUTING)\.md|(doc|apps)/.*\.(md|1|7))$' "$temp/files")
	awk -v exceptions="$exceptions" -f "$PLX_SOURCE_ROOT/tests/apps/pages.awk" "$temp/files" pass=1 "${pages[@]}" pass=2 "${pages[@]}"
}

found=$(missing "$PLX_SOURCE_ROOT")
check 'all files and headings that pages name are there' "[[ -z \$found ]]"
[[ -z $found ]] || echo "$found"

# A tree whose pages are correct except for the lines listed below.
mkdir -p "$temp/tree/doc/guide" "$temp/tree/lib/mem" "$temp/tree/lib/ring" "$temp/tree/tests/apps"
touch "$temp/tree/tests/apps/pages_test.sh" "$temp/tree/lib/mem/pool.c" "$temp/tree/lib/ring/ring.c" "$temp/tree/lib/mem/plx_mem.h"
cat >"$temp/tree/README.md" <<'END'
# A tree
[guide](doc/guide/index.md#what-is-there), [itself](#a-tree), [elsewhere](https://example.org/x), `pool.c`, `mem/pool.c`
lib/mem/pool.c and lib/{mem,ring}, `lib/*/plx_*.h`, `lib/<name>/`, lib/NAME/x, build/lib/none, `apps/pages`
[gone](doc/guide/gone.md)
[no heading](doc/guide/index.md#what-was-there)
in lib/mem/gone.c, as a sentence.
`gone.c`
lib/{mem,gone}/
`lib/*/gone_*.h`
END
printf '# Guide\n## What *is* there?\n[back](../../README.md), [mem](../../lib/mem), ../README.md\n' >"$temp/tree/doc/guide/index.md"
exceptions=''
check 'what is not there is found' \
	"[[ \$(missing '$temp/tree' | sed 's/: .*//' | tr '\n' ' ') == 'README.md:4 README.md:5 README.md:6 README.md:7 README.md:8 README.md:9 ' ]]"

# The tests that show what a page of the guide states: "<!-- tests/FILE words in it -->".
while read -r file words; do
	check "there is the test $file $words" "grep -qF -- '$words' '$PLX_SOURCE_ROOT/$file'"
done < <(sed -n 's/.*<!-- \(tests\/.*\) -->.*/\1/p' "$PLX_SOURCE_ROOT"/doc/guide/*.md)
exit $failed
