# SPDX-License-Identifier: BSD-3-Clause
plot = 'percentiles'
load here.'common.gp'
set title sprintf('Round trip of %s messages by percentile', size)
set xlabel 'percentile (axis: 1 / (1 - p), logarithmic)'
set ylabel 'full round trip, µs'
set logscale xy
set xrange [1:*]
set xtics ('0 %%' 1, '50 %%' 2, '90 %%' 10, '99 %%' 100, '99.9 %%' 1000, '99.99 %%' 10000, '99.999 %%' 100000, '99.9999 %%' 1000000)
plot for [row in have('percentiles')] sprintf('%s/percentiles.%s', data, row) \
	using 1:2 with lines linewidth width[index_of(row)] linecolor rgb colour[index_of(row)] title row
