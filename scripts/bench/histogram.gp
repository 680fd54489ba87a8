# SPDX-License-Identifier: BSD-3-Clause
# Histograms of round trips, one strip per row. Variables: data (folder of N.histogram, and a line of `labels`, `p50`
# and `colours` for each), n, size as text, state, format, target, frame.
height = 90 + 62 * n
load 'frame.gp'
line(file, i) = system(sprintf("sed -n %dp '%s/%s'", i, data, file))
set title sprintf('Round trips of %s%s', size, state eq 'one' ? '' : ', CPUs '.state) noenhanced
set xlabel 'full round trip, µs (logarithmic; bins 2 % wide; each row up to its p99.5)'
set logscale x
set xtics (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000)
set yrange [0:n + 0.05]
set border 1
set lmargin 30
unset key
unset grid
set grid xtics linetype 1 linewidth 1 linecolor '#dddddd'
set ytics scale 0 noenhanced
set ytics ()
do for [i=1:n] {
	set ytics add (line('labels', i) n - i + 0.3)
	set label i 'p50 '.line('p50', i) at graph 1.005, first n - i + 0.3 noenhanced
}
set rmargin 12
plot for [i=1:n] sprintf('%s/%d.histogram', data, i) using 1:(n - i + 0.88 * $2) with filledcurves y=(n - i) \
	fillcolor rgb line('colours', i) fillstyle solid 0.85 noborder
