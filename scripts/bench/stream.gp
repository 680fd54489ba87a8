# SPDX-License-Identifier: BSD-3-Clause
# Messages and bytes a second, by size. Variables: those of flow.gp.
left = 'million messages a second'
right = 'GB a second'
rows = 'raw-fi-plxshm raw-fi-plxshm-cma raw-fi-shm raw-fi-shm-nocma shm-stream'
array colour[5] = ['#17becf', '#17becf', '#2ca02c', '#2ca02c', '#e6550d']
array dash[5] = [1, 2, 1, 2, 1]
load 'flow.gp'
