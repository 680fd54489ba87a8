# SPDX-License-Identifier: BSD-3-Clause
# From all runs of the part netio (-s) to netio.json: the median of every figure over the rounds. Arguments: between
# (states.jq).

include "sums";
include "words";

# Rows in running order.
def in_order: reduce .[] as $name ([]; if any(.[]; . == $name) then . else . + [$name] end);

def combined: {
	key: .[0].key,
	name: .[0].row,
	figure: (.[0] | ["kept", "cycles_per_copy", "p50_ns", "gbit_per_s"] as $all | . as $run | first($all[] | select($run[.]))),
	test: .[0].test,
	provider: .[0].provider,
	size_bytes: .[0].size_bytes,
	subscribers: .[0].subscribers,
	rounds: length,
	count: (map(.count | values) | add)
} + spread("mmsg_per_s") + spread("gbit_per_s") + spread("p50_ns") + {p99_ns: (map(.p99_ns) | median)}
	+ spread("cycles_per_copy") + spread("kept") + {
	rate_asked: (map(.rate_asked) | median),
	cpu_percent_sender: (map(.cpu_percent_sender) | median),
	cpu_percent_receiver: (map(.cpu_percent_receiver) | median)
};

# What a row is compared with, and by which figure.
def peer_of: {
	"raw-fi-tcp-bw": ["iperf3", "gbit_per_s"],
	"zmq-in-place": ["zmq-push-pull", "gbit_per_s"],
	"buffered-tcp": ["zmq-push-pull", "gbit_per_s"],
	"buffered-1M-tcp": ["zmq-push-pull", "gbit_per_s"],
	"buffered-shm": ["buffered-tcp", "gbit_per_s"],
	"unbuffered-tcp": ["raw-fi-tcp-bw", "gbit_per_s"],
	"unbuffered-shm": ["unbuffered-tcp", "gbit_per_s"],
	"reference-tcp": ["raw-fi-tcp-bw", "gbit_per_s"],
	"ping-tcp": ["tcp-poll", "p50_ns"],
	"ping-shm": ["shm-poll", "p50_ns"],
	"publish-buffered-4": ["publish-buffered-1", "cycles_per_copy"],
	"publish-buffered-16": ["publish-buffered-1", "cycles_per_copy"],
	"publish-unbuffered-4": ["publish-unbuffered-1", "cycles_per_copy"],
	"publish-unbuffered-16": ["publish-unbuffered-4", "cycles_per_copy"]
}[.] // [null, null];

# null if either row is missing.
def figure($rows; $name; $size; $field):
	[$rows[] | select(.name == $name and .size_bytes == $size) | .[$field] | values][0];
def ratio($rows; $name; $peer; $size; $field):
	figure($rows; $name; $size; $field) as $own
	| figure($rows; $peer; $size; $field) as $other
	| if $own and $other then $own / $other else null end;

# Half of its rate was requested in each round; the share that was kept.
def half_of: "publish-buffered-4";
def with_half: . + {peer: half_of, ratio: (.kept | round3), ratio_of: "kept"};

def with_peer($rows):
	if .kept then with_half else
	(.name | peer_of) as [$peer, $field]
	| (if $peer then ratio($rows; .name; $peer; .size_bytes; $field) else null end) as $ratio
	| . + if $ratio then {peer: $peer, ratio: ($ratio | round3), ratio_of: $field}
		else {peer: null, ratio: null, ratio_of: null} end
	end;

def what($name; $peer; $bytes; $words): "netio, \($name) over \($peer), \($bytes | size)\($words)";

def rate_bar($rows; $name; $peer; $size; $limit; $gates):
	ratio($rows; $name; $peer; $size; "gbit_per_s") | values
	| at_least(what($name; $peer; $size; ""); .; $limit; $gates);

def cycles_bar($rows; $name; $peer; $size; $limit; $gates):
	ratio($rows; $name; $peer; $size; "cycles_per_copy") | values
	| at_most(what($name; $peer; $size; ", cycles/copy"); .; $limit; $gates);

def kept_bar($rows; $name):
	figure($rows; $name; 64; "kept") | values
	| at_least(what($name; half_of; 64; ", kept of half its rate"); .; 0.99; false);

# Of 64 B. plus: nanoseconds.
def ping_bar($rows; $name; $peer; $factor; $plus):
	ratio($rows; $name; $peer; 64; "p50_ns") | values
	| at_most(what($name; $peer; 64; ", p50"); .;
		($factor + $plus / figure($rows; $peer; 64; "p50_ns") | round3); false);

def sum: (map(.row) | in_order) as $names
| (group_by([.size_bytes, (.row as $row | $names | index($row))]) | map(combined)) as $rows
| {
	rows: ($rows | map(with_peer($rows))),
	thresholds: [
		# Rates vary by 10 % and more between runs: gates allow for that.
		ping_bar($rows; "ping-tcp"; "tcp-poll"; 1.05; 0),
		ping_bar($rows; "ping-shm"; "shm-poll"; 1; 100),
		rate_bar($rows; "buffered-tcp"; "zmq-push-pull"; 64; 5; false),
		rate_bar($rows; "buffered-shm"; "buffered-tcp"; 64; 2; false),
		rate_bar($rows; "reference-tcp"; "raw-fi-tcp-bw"; 1048576; 0.9; false),
		rate_bar($rows; "reference-tcp"; "iperf3"; 1048576; 1.6; false),
		rate_bar($rows; "buffered-tcp"; "zmq-push-pull"; 65536; 1.8; false),
		rate_bar($rows; "buffered-1M-tcp"; "zmq-push-pull"; 65536; 3; false),
		cycles_bar($rows; "publish-buffered-16"; "publish-buffered-1"; 64; 1.15; true),
		cycles_bar($rows; "publish-buffered-16"; "publish-buffered-1"; 65536; 1.15; false),
		(64, 65536 | cycles_bar($rows; "publish-unbuffered-16"; "publish-unbuffered-4"; .; 1.1; false)),
		("disconnect", "drop-old", "drop-new", "conflate" | kept_bar($rows; "beside-\(.)"))]
};

{
	schema: "pollux-bench/2",
	part: "netio",
	unit: "messages and bits per second that the receiver has; round trips in nanoseconds; cycles of the publisher per copy; medians over the rounds",
	every_run: .
} + by_state($between; sum)
