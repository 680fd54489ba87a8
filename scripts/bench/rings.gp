# SPDX-License-Identifier: BSD-3-Clause
# Cycles per element by burst. Variables: data (folder of points), format, target.
height = 480
load 'frame.gp'
set logscale xy
set xtics (1, 8, 32, 256)
set xrange [0.8:320]
set xlabel 'burst'
set key right top
kinds = 'spsc mpsc mpmc'
array colour[3] = ['#d62728', '#2ca02c', '#1f77b4']
set multiplot layout 1,2
do for [lcores in '1 2'] {
	set title lcores eq '1' ? 'on one lcore' : 'between two lcores'
	set ylabel lcores eq '1' ? 'cycles per element' : ''
	plot for [i=1:3] sprintf('%s/%s.%s', data, word(kinds, i), lcores) using 1:2 with linespoints \
			linewidth 3 pointtype 7 linecolor rgb colour[i] title word(kinds, i), \
		for [i=1:3] sprintf('%s/%s.%s', data, word(kinds, i), lcores) using 1:3 with linespoints \
			linewidth 1 pointtype 6 dashtype 2 linecolor rgb colour[i] title word(kinds, i).", DPDK's"
}
unset multiplot
