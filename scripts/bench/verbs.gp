# SPDX-License-Identifier: BSD-3-Clause
# Round trips over an RDMA device by percentile. Variables: data (folder of points), device, size as text, bytes,
# references (whether to draw figures of other hosts), format, target.
height = 540
load 'frame.gp'
set key outside right top
rows = 'ib-send-lat raw-fi-verbs verbs-poll ib-send-lat-event raw-fi-verbs-event verbs-event'
array colour[6] = ['#7f7f7f', '#1f77b4', '#d62728', '#bcbd22', '#8c564b', '#e6550d']
array width[6] = [2, 2, 3, 2, 2, 3]
have = system(sprintf("cd '%s' && for row in %s; do test -s $row && echo $row; done", data, rows))
index_of(row) = sum [i=1:words(rows)] (word(rows, i) eq row ? i : 0)
set title sprintf('Round trip of %s messages on %s by percentile', size, device) noenhanced
set xlabel 'percentile (axis: 1 / (1 - p), logarithmic)'
set ylabel 'full round trip, µs'
set logscale xy
set xrange [1:*]
set xtics ('0 %%' 1, '50 %%' 2, '90 %%' 10, '99 %%' 100, '99.9 %%' 1000, '99.99 %%' 10000, '99.999 %%' 100000, '99.9999 %%' 1000000)
poll = references ? 3.2 : NaN
event = references ? 8.0 : NaN
plot for [row in have] sprintf('%s/%s', data, row) \
	using 1:2 with lines linewidth width[index_of(row)] linecolor rgb colour[index_of(row)] title row, \
	poll with lines dashtype 2 linecolor rgb '#7f7f7f' title (references ? 'netio-talk-poll' : ''), \
	event with lines dashtype 2 linecolor rgb '#bcbd22' title (references ? 'netio-talk-event' : '')
