# SPDX-License-Identifier: BSD-3-Clause
plot = 'histogram'
load here.'common.gp'
set title sprintf('Histogram of round trips of %s messages', size)
set xlabel 'full round trip, µs (logarithmic; bins 2 % wide; each row up to its p99.5)'
set ylabel 'share of round trips, %'
set logscale x
set xtics (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 3000, 10000, 30000, 100000)
set yrange [0:*]
plot for [row in have('histogram')] sprintf('%s/histogram.%s', data, row) \
	using 1:2 with steps linewidth width[index_of(row)] linecolor rgb colour[index_of(row)] title row
