# SPDX-License-Identifier: BSD-3-Clause
# From all single runs of streams (-s) to stream.json: of every figure the median over the rounds.

include "sums";

def names: ["raw-fi-plxshm", "raw-fi-plxshm-cma", "raw-fi-shm", "raw-fi-shm-nocma", "shm-stream"];
def rank: . as $row | (names | index($row)) // 99;

def combined: {
	name: .[0].row,
	provider: .[0].provider,
	size_bytes: .[0].size_bytes,
	rounds: length,
	count: (map(.count) | add),
	elapsed_ns: (map(.elapsed_ns) | add),
	messages_per_s: (map(.messages_per_s) | median),
	messages_per_s_least: (map(.messages_per_s) | min),
	messages_per_s_greatest: (map(.messages_per_s) | max),
	bytes_per_s: (map(.bytes_per_s) | median)
};

def rate_of($rows; $row; $size):
	[$rows[] | select(.name == $row and .size_bytes == $size) | .messages_per_s][0];

# What a row is held against.
def base_of: {
	"raw-fi-plxshm": "raw-fi-shm", "raw-fi-plxshm-cma": "raw-fi-shm", "shm-stream": "raw-fi-plxshm"
}[.] // null;

def with_ratio($rows):
	rate_of($rows; .name | base_of; .size_bytes) as $base
	| . + {ratio: (if $base then .messages_per_s / $base | round3 else null end)};

def ratio_bar($rows; $row; $base; $size; $words; $limit; $gates):
	rate_of($rows; $row; $size) as $rate
	| rate_of($rows; $base; $size) as $over
	| select($rate and $over)
	| at_least("one way, \($row) over \($base), \($words)"; $rate / $over; $limit; $gates);

# Absolute rates are the host's as much as the code's: an aim.
def aim($rows; $row; $millions):
	rate_of($rows; $row; 64) | select(.)
	| at_least("one way, \($row), 64 B, million messages/s"; . / 1e6; $millions; false);

. as $every
| (group_by([.size_bytes, (.row | rank)]) | map(combined)) as $rows
| {
	schema: "pollux-bench/1",
	part: "stream",
	unit: "messages and bytes per second that the other process received; medians over the rounds",
	rows: ($rows | map(with_ratio($rows))),
	bars: [
		# moves by a tenth from run to run, so it does not gate
		ratio_bar($rows; "raw-fi-plxshm"; "raw-fi-shm"; 1048576; "1 MiB"; 1; false),
		ratio_bar($rows; "raw-fi-plxshm"; "raw-fi-shm-nocma"; 1048576; "1 MiB"; 1.5; true),
		# the two aims below, as a ratio
		ratio_bar($rows; "shm-stream"; "raw-fi-plxshm"; 64; "64 B"; 0.667; false),
		aim($rows; "raw-fi-plxshm"; 15),
		aim($rows; "shm-stream"; 10)],
	every_run: $every
}
