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
rows = 'raw-tcp raw-fi-tcp raw-fi-shm raw-fi-plxshm raw-zmq tcp-poll shm-poll'
array colour[7] = ['#7f7f7f', '#1f77b4', '#2ca02c', '#17becf', '#9467bd', '#d62728', '#e6550d']
array width[7] = [2, 2, 2, 2, 2, 3, 3]
have(kind) = system(sprintf("cd '%s' && for row in %s; do test -s %s.$row && echo $row; done", data, rows, kind))
index_of(row) = row eq 'raw-tcp' ? 1 : row eq 'raw-fi-tcp' ? 2 : row eq 'raw-fi-shm' ? 3 : \
	row eq 'raw-fi-plxshm' ? 4 : row eq 'raw-zmq' ? 5 : row eq 'tcp-poll' ? 6 : 7
