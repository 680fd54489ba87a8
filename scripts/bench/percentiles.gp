# SPDX-License-Identifier: BSD-3-Clause
# Round trips by percentile, a line for each row. Variables: those of histogram.gp, with N.percentiles.
height = 600
load 'frame.gp'
line(file, i) = system(sprintf("sed -n %dp '%s/%s'", i, data, file))
set title sprintf('Round trips of %s by percentile%s', size, state eq 'one' ? '' : ', CPUs '.state) noenhanced
set xlabel 'percentile (axis: 1 / (1 - p), logarithmic)'
set ylabel 'full round trip, µs'
set logscale xy
set xrange [1:*]
set xtics ('0 %%' 1, '50 %%' 2, '90 %%' 10, '99 %%' 100, '99.9 %%' 1000, '99.99 %%' 10000, '99.999 %%' 100000, '99.9999 %%' 1000000)
set key at graph 0.5, screen 0.01 bottom center horizontal Left reverse noenhanced samplen 2 maxcols 3
set bmargin 4.5 + ceil(n / 3.0) * 1.3
plot for [i=1:n] sprintf('%s/%d.percentiles', data, i) using 1:2 with lines linewidth 2 \
	linecolor rgb line('colours', i) title line('labels', i)
