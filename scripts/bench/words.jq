# SPDX-License-Identifier: BSD-3-Clause
# Formatting figures and rows for tables of the terminal and the report.

# Nanoseconds as microseconds.
def us: if . == null then "n/a" elif . >= 1000000 then . / 1000 | round | tostring
	else . / 10 | round | "\(. / 100 | floor).\(. % 100 + 100 | tostring | .[1:])" end;

def short: . * 1000 | round / 1000;

# Four digits, wherever the point is.
def digits: if . == null or . == 0 then . else pow(10; 3 - (fabs | log10 | floor)) as $unit | . * $unit | round / $unit end;

def over(b): if . and b then . / b | short else "n/a" end;

def size: if . >= 1048576 and . % 1048576 == 0 then "\(. / 1048576) MiB"
	elif . >= 1024 and . % 1024 == 0 then "\(. / 1024) KiB" else "\(.) B" end;

# A row as text.
def row_label: {
	"shm-poll": "Pollux, shared memory", "shm-adaptive": "Pollux, shared memory, adaptive",
	"tcp-poll": "Pollux, TCP", "tcp-adaptive": "Pollux, TCP, adaptive",
	"shm-event": "Pollux, shared memory, asleep", "tcp-event": "Pollux, TCP, asleep",
	"tcp-poll-idle": "Pollux, TCP, with 1000 idle links", "tcp-beside": "Pollux, TCP, during a stream", "shm-poll-tcp": "Pollux, shared memory, with idle TCP",
	"shm-stream": "Pollux, shared memory", "tcp-stream": "Pollux, TCP",
	"tcp-single": "Pollux, TCP, one a turn",
	"raw-tcp": "plain sockets", "raw-tcp-event": "plain sockets, asleep", "raw-fi-tcp": "libfabric, TCP", "raw-fi-shm": "libfabric, shared memory",
	"raw-fi-plxshm": "libfabric over plx_shm", "raw-fi-plxshm-event": "libfabric over plx_shm, asleep",
	"raw-fi-plxshm-cma": "libfabric over plx_shm, CMA", "raw-fi-shm-nocma": "libfabric, shared memory, no CMA",
	"raw-zmq": "ZeroMQ, TCP, asleep", "zmq-push-pull": "ZeroMQ, TCP", "zmq-in-place": "ZeroMQ, TCP, without a copy",
	"buffered-tcp": "NetIO buffered, TCP", "buffered-shm": "NetIO buffered, shared memory",
	"unbuffered-tcp": "NetIO unbuffered, TCP", "unbuffered-shm": "NetIO unbuffered, shared memory",
	"reference-tcp": "NetIO by reference, TCP", "ucx-shm": "UCX, shared memory", "ucx-tcp": "UCX, TCP", "ucx-tcp-am": "UCX, TCP, active messages",
	"bare": "a bare cache line", "raw-eventfd": "eventfd, asleep"
}[.] // .;

# Colours of a row's histogram: Pollux's are warm.
def colour: {
	"shm-poll": "#c2410c", "shm-adaptive": "#f59e0b", "tcp-poll": "#be123c", "tcp-adaptive": "#ec4899", "tcp-poll-idle": "#9f1239", "tcp-beside": "#881337", "shm-event": "#fb7185", "tcp-event": "#f43f5e",
	"shm-poll-tcp": "#92400e", "self-test": "#c2410c", "raw-tcp": "#64748b", "raw-tcp-event": "#94a3b8", "raw-fi-shm": "#2563eb", "raw-fi-tcp": "#0891b2",
	"raw-fi-plxshm": "#1e40af", "raw-fi-plxshm-event": "#60a5fa", "ucx-shm": "#15803d", "ucx-tcp": "#65a30d", "raw-zmq": "#9333ea",
	"bare": "#334155", "raw-eventfd": "#a16207"
}[.] // "#475569";

def is_pollux: test("^(shm|tcp|fi)-(poll|beside|adaptive|event|stream|single)|^self-test$|^verbs-");

# For a table of the report.
def cells: map("<td>\(tostring | @html)</td>") | join("");

# A row's baseline and comparison.
def ratio_words: if .base == null then "–" elif .ratio then "\(.ratio) × \(.base)" else "n/a" end;

# With the state of the CPUs, if there is more than one.
def in_state($state): if $state == "one" then . else "\(.), CPUs \($state)" end;

# A threshold and its result.
def verdict: if .ok == null then "n/a" elif .ok then "reached" elif .gates then "missed" elif .least then "below" else "above" end;
