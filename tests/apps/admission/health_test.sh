#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A monitor that connects and closes without a byte, ten times a second, causes no warning.
#
#     health_test.sh PROGRAMS
set -uo pipefail
# shellcheck source=tests/apps/admission/admission.sh
. "$(dirname "${BASH_SOURCE[0]}")/admission.sh"

start_server links 127.0.0.1:7000
listening "$temp/server" || check 'the server starts' false
start_strangers 1 --connect 127.0.0.1:7000 --rate 10 --count 30 --for 3s --leave
ends "$strangers"
check 'it connects' "grep -q '^30 made' '$temp/strangers1'"
find_usual 127.0.0.1:7000
check 'the server warns of nothing' "! grep -E ' (warning|error): ' '$temp/server.err' | grep -v ' \(eal\|idle\): '"
finish
