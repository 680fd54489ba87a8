# SPDX-License-Identifier: BSD-3-Clause
# From all runs of the part stream (-s) to stream.json. Argument: between (states.jq).

include "sums";

def names: ["raw-fi-shm", "raw-fi-shm-nocma", "raw-fi-plxshm", "raw-fi-plxshm-cma", "ucx-shm", "shm-stream", "iperf3", "raw-fi-tcp",
	"tcp-stream", "ucx-tcp", "ucx-tcp-am", "tcp-single"];
def rank: . as $row | (names | index($row)) // 99;

# The baseline of a row: the first one measured, as a short run has no raw-fi-plxshm.
def base_in($runs): {"shm-stream": ["raw-fi-plxshm", "raw-fi-shm"], "raw-fi-plxshm": ["raw-fi-shm"], "raw-fi-plxshm-cma": ["raw-fi-shm"],
	"ucx-shm": ["raw-fi-shm"], "tcp-stream": ["raw-fi-tcp"], "ucx-tcp": ["raw-fi-tcp"],
	"ucx-tcp-am": ["raw-fi-tcp"]}[.] // [] | map(select(. as $base | any($runs[]; .key == $base)))[0];

def combined($runs):
	.[0] as $first
	| ($first.key | base_in($runs)) as $base
	| {
		key: $first.key,
		provider: $first.provider,
		size_bytes: $first.size_bytes,
		figure: "messages_per_s",
		rounds: length,
		count: (map(.count) | add),
		bytes_per_s: (map(.bytes_per_s) | median),
		base: $base,
		ratio: (if $base then ratio_of_pairs($runs; $first.key; $base; $first.size_bytes; "messages_per_s") | round3 else null end)
	} + spread("messages_per_s");

def ratio_bar($runs; $row; $base; $size; $words; $limit; $gates):
	ratio_of_pairs($runs; $row; $base; $size; "messages_per_s") | values
	| at_least("one way, \($row) over \($base), \($words)"; .; $limit; $gates);

# Relative to the fastest of the others.
def best_bar($runs; $row; $bases; $size; $words; $limit):
	[$bases[] as $base | ratio_of_pairs($runs; $row; $base; $size; "messages_per_s") | values] | min | values
	| at_least("one way, \($row) over the best of \($bases | join(" and ")), \($words)"; .; $limit; false);

# Absolute rates depend on the host as much as on the code: an aim.
def aim($runs; $row; $millions):
	[$runs[] | select(.key == $row and .size_bytes == 64) | .messages_per_s] | median | values
	| at_least("one way, \($row), 64 B, million messages/s"; . / 1e6; $millions; false);

def sum: . as $runs | {
	rows: (group_by([.size_bytes, (.key | rank)]) | map(combined($runs))),
	thresholds: [
		# varies by 10 % between runs, so it does not gate
		ratio_bar($runs; "raw-fi-plxshm"; "raw-fi-shm"; 1048576; "1 MiB"; 1; false),
		ratio_bar($runs; "raw-fi-plxshm"; "raw-fi-shm-nocma"; 1048576; "1 MiB"; 1.5; true),
		# the two aims below, as a ratio
		ratio_bar($runs; "shm-stream"; "raw-fi-plxshm"; 64; "64 B"; 0.667; false),
		aim($runs; "raw-fi-plxshm"; 15),
		aim($runs; "shm-stream"; 10),
		aim($runs; "tcp-stream"; 4),
		ratio_bar($runs; "tcp-stream"; "ucx-tcp-am"; 4096; "4 KiB"; 2; false),
		([65536, "64 KiB"], [1048576, "1 MiB"] | . as [$size, $words]
			| ratio_bar($runs; "tcp-stream"; "raw-fi-tcp"; $size; $words; 1; false),
			  best_bar($runs; "tcp-stream"; ["iperf3", "ucx-tcp"]; $size; $words; 1.2))]
};

{
	schema: "pollux-bench/2",
	part: "stream",
	unit: "messages and bytes per second that the other process received; medians over the rounds",
	every_run: .
} + by_state($between; sum)
