#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The main job: the cost of messages between two processes on this host, compared with other transports. Sets up
# everything automatically. Options run other parts: bench.sh --help.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
command -v python3 >/dev/null || "$here/setup.sh" --for bench
# PYTHONSAFEPATH: modules are not searched in the user's folder.
PYTHONSAFEPATH=1 PYTHONPATH=$here${PYTHONPATH:+:$PYTHONPATH} exec python3 -X utf8 -B -m bench.cli "$@"
