#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Print file, line, phrase and replacement of awkward phrases, in the files given or in every text of the tree; fails if
# there is any.
set -uo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# REGEX|replacement, for grep -E: phrases without a legitimate use.
phrases='\bbehind\b|after, following, past
\bbut for\b|except
\b(for|by|from|of|to|with|and|but|that|because|knows?|says?) who(ever)? |callers that, a thread that, the peer
\b[Ww]hoever\b|the caller, the thread that
\b(is|are|was|were|be|been) told\b|is notified, learns; "reports"
\b(tells?|told) (of|by|that|how|who|what|whether)\b|reports, shows, says
\b(is|are) to (be )?(have|hold|know|last|send|take|wait|used|given|sent|kept|made|end|go|come|do|run|begin|measure|make)\b|must, will
\b(has|have|had) to be\b|must be
\bshall\b|must, will
\bso (many|long|much|few)\b|name the quantity
\bby itself\b|automatically; alone
\bof (its|their|our|your) own\b|its own, private, separate
\b(say|says|said) so\b|logs it, reports it
\bany more\b|no longer
\bslept on\b|supports sleeping
\bwhich it is\b|the choice
\bputs? right\b|fixes
\b(go|goes|went) on\b|continues
\bcomes? of\b|results from
\bin words\b|as text
(^|[^-])\bbeside([^-_a-z]|$)|next to, compared with, in addition to
\bby kind\b|by class
\bleft away\b|omitted
\bof that name\b|unknown X
\b(greeted|welcome)\b|handshake complete; threshold
\b[Ww]here (it|there|they|that|one|nothing|none) (is|are|stands)\b|if, when'

files=("$@")
(($#)) || mapfile -t files < <(sources '*.c' '*.h' '*.md' '*.sh' '*.build' '*.txt' '*.conf' '*.pml' '*.py' ':!scripts/phrases.sh')
found=$(while IFS= read -r phrase; do
	grep -HnoE -- "${phrase%|*}" "${files[@]}" /dev/null | sed "s|\$| -> ${phrase##*|}|"
done <<<"$phrases" | grep -vE '^doc/apps/bench.md:.*.beside.')
[[ -n $found ]] || exit 0
sort -t: -k1,1 -k2,2n <<<"$found"
exit 1
