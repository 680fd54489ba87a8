# SPDX-License-Identifier: BSD-3-Clause
# How figures are written: in tables of the terminal and of the report.

# Nanoseconds in microseconds.
def us: if . == null then "n/a" elif . >= 1000000 then . / 1000 | round | tostring
	else . / 10 | round | "\(. / 100 | floor).\(. % 100 + 100 | tostring | .[1:])" end;

def short: . * 1000 | round / 1000;

# Four digits of it, wherever its point is.
def digits: if . == null or . == 0 then . else pow(10; 3 - (fabs | log10 | floor)) as $unit | . * $unit | round / $unit end;

def over(b): if . and b then . / b | short else "n/a" end;

def size: if . >= 1048576 and . % 1048576 == 0 then "\(. / 1048576) MiB"
	elif . >= 1024 and . % 1024 == 0 then "\(. / 1024) KiB" else "\(.) B" end;

# Of a table of the report.
def cells: map("<td>\(tostring | @html)</td>") | join("");
