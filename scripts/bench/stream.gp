# SPDX-License-Identifier: BSD-3-Clause
# Messages and bytes per second, by size. Variables: those of flow.gp.
left = 'million messages a second'
right = 'GB a second'
rows = 'raw-fi-plxshm raw-fi-plxshm-cma raw-fi-shm raw-fi-shm-nocma shm-stream ucx-tcp iperf3 tcp-stream'
array colour[9] = ['#17becf', '#17becf', '#2ca02c', '#2ca02c', '#e6550d', '#0891b2', '#65a30d', '#000000', '#be123c']
array dash[9] = [1, 2, 1, 2, 1, 3, 3, 3, 1]
load 'flow.gp'
