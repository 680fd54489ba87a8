# SPDX-License-Identifier: BSD-3-Clause
# Messages and bytes a second, by size. Variables: here (this folder), data (folder of points), format, target.
frame = 'stream'
height = 480
load here.'frame.gp'
set logscale xy
set xtics ('64 B' 64, '1 KiB' 1024, '4 KiB' 4096, '64 KiB' 65536, '1 MiB' 1048576)
set xlabel 'message'
rows = 'raw-fi-plxshm raw-fi-plxshm-cma raw-fi-shm raw-fi-shm-nocma shm-stream'
array colour[5] = ['#17becf', '#17becf', '#2ca02c', '#2ca02c', '#e6550d']
array dash[5] = [1, 2, 1, 2, 1]
have = system(sprintf("cd '%s' && for row in %s; do test -s $row && echo $row; done", data, rows))
index_of(row) = sum [i=1:words(rows)] (word(rows, i) eq row ? i : 0)
set multiplot layout 1,2
do for [panel in 'messages bytes'] {
	column = panel eq 'messages' ? 2 : 3
	set title panel eq 'messages' ? 'million messages a second' : 'GB a second'
	if (column == 2) { set key bottom left } else { set key bottom right }
	plot for [row in have] sprintf('%s/%s', data, row) using 1:column with linespoints linewidth 2 \
		pointtype 7 dashtype dash[index_of(row)] linecolor rgb colour[index_of(row)] title row
}
unset multiplot
