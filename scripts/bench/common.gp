# SPDX-License-Identifier: BSD-3-Clause
# What the plots of round trips share. Variables: here (this folder), data (folder of points), size in words,
# bytes, format, target, plot.
frame = plot.'_'.bytes
height = 540
load here.'frame.gp'
set key outside right top
rows = 'raw-tcp raw-fi-tcp raw-fi-shm bare raw-fi-plxshm raw-eventfd raw-fi-plxshm-event raw-zmq tcp-poll shm-poll self-test'
array colour[11] = ['#7f7f7f', '#1f77b4', '#2ca02c', '#000000', '#17becf', '#bcbd22', '#8c564b', '#9467bd', '#d62728', \
	'#e6550d', '#d62728']
array width[11] = [2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3]
have(kind) = system(sprintf("cd '%s' && for row in %s; do test -s %s.$row && echo $row; done", data, rows, kind))
index_of(row) = sum [i=1:words(rows)] (word(rows, i) eq row ? i : 0)
