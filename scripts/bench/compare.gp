# SPDX-License-Identifier: BSD-3-Clause
# Changes between two runs, with their noise. Variables: data (folder of `changes`: per cent, least, greatest, verdict
# number; and a line of `labels` for each), n, format, target, frame.
height = 110 + 26 * n
load 'frame.gp'
line(i) = system(sprintf("sed -n %dp '%s/labels'", i, data))
set xlabel 'change from A to B, %, with the noise of the rounds'
set yrange [0.4:n + 0.6]
set lmargin 44
unset key
set ytics scale 0 noenhanced
set ytics ()
do for [i=1:n] { set ytics add (line(i) n - i + 1) }
set arrow 1 from first 0, graph 0 to first 0, graph 1 nohead linecolor '#555555'
plot data.'/changes' using 1:(n - $0):2:3:($4 == 1 ? 0x15803d : $4 == 2 ? 0xb00020 : 0x8a94a6) with xerrorbars \
	linecolor rgb variable linewidth 2 pointtype 7
