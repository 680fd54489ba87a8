#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A thousand clients that wait for a server all get in at the default rate, 1 000 a second, when it starts.
#
#     herd_test.sh PROGRAMS PROVIDER SERVER CLIENTS
set -uo pipefail
# shellcheck source=tests/apps/admission/admission.sh
. "$(dirname "${BASH_SOURCE[0]}")/admission.sh"

provider=$2
within=${PLX_TEST_SOAK:+2s} # on a quiet host

for n in 1 2 3 4; do
	start_crowd $n "$4" 127.0.0.1:7000 --count 250
done
crowds_wait 4
start_server "$3" 127.0.0.1:7000 --expect 1000 --within "${within:-10s}"
all_open "$provider, $4" 1000
finish
