# SPDX-License-Identifier: BSD-3-Clause
# CPU, p50 and p99 by rate, a line for each idle policy. Variables: data (folder of points), provider, format, target.
height = 420
load 'frame.gp'
policies = 'poll event latency balanced fixed'
array colour[5] = ['#7f7f7f', '#1f77b4', '#d62728', '#e6550d', '#2ca02c']
have = system(sprintf("cd '%s' && for row in %s; do test -s $row && echo $row; done", data, policies))
index_of(row) = sum [i=1:words(policies)] (word(policies, i) eq row ? i : 0)
set logscale x
set xlabel 'messages a second'
set format x '10^{%L}'
set datafile missing '-'
set xrange [50:200000]
count(column) = int(system(sprintf("cd '%s' && cat * | awk '$%d != \"-\"' | wc -l", data, column)))
set multiplot layout 1,3 title provider
do for [panel=2:4] {
	if (panel == 2) { set title 'CPU of the server, %'; unset logscale y; set yrange [0:105]; set key top left } \
	else { set title panel == 3 ? 'p50, us' : 'p99, us'; set logscale y; set yrange [*:*]; unset key }
	if (count(panel)) { plot for [row in have] sprintf('%s/%s', data, row) using 1:panel with linespoints linewidth 2 \
		pointtype 7 linecolor rgb colour[index_of(row)] title row } else { set multiplot next }
}
unset multiplot
