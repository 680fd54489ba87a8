# SPDX-License-Identifier: BSD-3-Clause
# Messages and bits per second, by size. Variables: those of flow.gp.
left = 'million messages a second'
right = 'Gb a second'
rows = 'zmq-push-pull iperf3 raw-fi-tcp-bw buffered-tcp buffered-1M-tcp buffered-shm unbuffered-tcp unbuffered-shm reference-tcp zmq-in-place'
array colour[10] = ['#9467bd', '#000000', '#1f77b4', '#d62728', '#d62728', '#e6550d', '#2ca02c', '#8c564b', '#17becf', '#9467bd']
array dash[10] = [1, 1, 1, 1, 2, 1, 1, 1, 1, 2]
load 'flow.gp'
