# SPDX-License-Identifier: BSD-3-Clause
# A publisher's cycles per copy, by subscribers. Variables: data (folder of points, publish-MODE-SIZE), format, target.
height = 480
load 'frame.gp'
set logscale xy
set xtics (1, 4, 16)
set xrange [0.8:20]
set yrange [*:*]
set offsets graph 0, 0, graph 0.1, graph 0.1
set xlabel 'subscribers'
modes = 'buffered unbuffered'
array colour[2] = ['#d62728', '#2ca02c']
have(size) = system(sprintf("cd '%s' && for mode in %s; do test -s publish-$mode-%s && echo $mode; done", data, modes, size))
index_of(mode) = sum [i=1:words(modes)] (word(modes, i) eq mode ? i : 0)
set multiplot layout 1,2
do for [size in '64 65536'] {
	set title size eq '64' ? 'messages of 64 B' : 'messages of 64 KiB'
	set ylabel size eq '64' ? 'cycles of the publisher per copy' : ''
	shown = have(size)
	if (strlen(shown)) { plot for [mode in shown] sprintf('%s/publish-%s-%s', data, mode, size) using 1:2 with linespoints \
		linewidth 3 pointtype 7 linecolor rgb colour[index_of(mode)] title mode } else { set multiplot next }
}
unset multiplot
