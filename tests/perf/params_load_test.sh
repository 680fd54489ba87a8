#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# params-load against plx-params: nothing is lost, and it reports a service that ends.
# shellcheck disable=SC2016,SC2034 # check expands the conditions
set -uo pipefail
# shellcheck source=tests/apps/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../apps/checks.sh"

params=$1 load=$2

serve()
{
	rm -f "$temp"/p.db*
	start server "$params" --huge none --provider "$1" -- --serve "$temp/p.db" --listen 127.0.0.1:0
	server=$pid
	listening "$temp/server" || check 'it starts' false
}

# try PROVIDER OPTIONS...: sets `status`.
try()
{
	rm -f "$temp/load.json"
	"$load" --huge none --idle adaptive --provider "$1" -- --connect "$address" --parameters 2000 --out "$temp/load.json" \
		"${@:2}" >/dev/null 2>"$temp/load.err"
	status=$?
}

for provider in tcp shm; do
	serve "$provider"
	try "$provider" --watchers 10 --rate 2000 --duration 1s
	check "$provider: nothing is lost" '((status == 0))'
	check "$provider: each watcher got each set" 'jq -e ".count > 1500 and .lost == 0 and .messages + .conflated >= 10 * .count" \
		"$temp/load.json" >/dev/null'
	try "$provider" --watchers 3 --rate 500 --duration 1s --durable
	check "$provider: ... nor of what waits for the disk" '((status == 0)) && jq -e ".durable and .lost == 0" "$temp/load.json" >/dev/null'
	start load "$load" --huge none --provider "$provider" -- --connect "$address" --parameters 2000 --watchers 3 --duration 20s
	sleep 1
	kill_off "$server"
	ends "$pid"
	status=$?
	check "$provider: a service that ends is reported" '((status == 1)) && [[ -s $temp/load.err ]]'
done
try shm
check 'so is a missing one' '((status == 1))'
try shm --watchers 1001
check 'and an option that is wrong' '((status == 2))'
exit $failed
