#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Draw doc/images/NAME.svg from each doc/images/NAME.dot, with dot of the package graphviz.
#
#     scripts/diagrams.sh [NAME...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../doc/images"

type dot >/dev/null 2>&1 || {
	echo 'diagrams.sh: dot not found; apt-get install graphviz' >&2
	exit 1
}
(($#)) || set -- *.dot
for name; do
	dot -Tsvg "${name%.dot}.dot" -o "${name%.dot}.svg"
done
