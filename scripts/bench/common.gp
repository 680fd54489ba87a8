# SPDX-License-Identifier: BSD-3-Clause
# What both plots share. Variables: data (folder of points), size in words, bytes, format, target, plot.
if (format eq 'svg') {
	set terminal svg size 960,540 font 'DejaVu Sans,13' background '#ffffff' name plot.'_'.bytes
} else {
	set terminal pngcairo size 1200,675 font 'DejaVu Sans,11'
}
set output target
set border 3 linecolor '#555555'
set tics nomirror
set grid xtics ytics linetype 1 linewidth 1 linecolor '#dddddd'
set key outside right top
rows = 'raw-tcp raw-fi-tcp raw-fi-shm bare raw-fi-plxshm raw-eventfd raw-fi-plxshm-event raw-zmq tcp-poll shm-poll'
array colour[10] = ['#7f7f7f', '#1f77b4', '#2ca02c', '#000000', '#17becf', '#bcbd22', '#8c564b', '#9467bd', '#d62728', \
	'#e6550d']
array width[10] = [2, 2, 2, 2, 2, 2, 2, 2, 3, 3]
have(kind) = system(sprintf("cd '%s' && for row in %s; do test -s %s.$row && echo $row; done", data, rows, kind))
index_of(row) = sum [i=1:words(rows)] (word(rows, i) eq row ? i : 0)
