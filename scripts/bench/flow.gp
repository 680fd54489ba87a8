# SPDX-License-Identifier: BSD-3-Clause
# Two panels by message size, a line for each row. Variables: data (folder of points: size, left, right), format,
# target; and of the part: rows, colour, dash, left, right (titles).
height = 480
load 'frame.gp'
set logscale xy
set xrange [32:4194304]
set xtics ('64 B' 64, '1 KiB' 1024, '4 KiB' 4096, '64 KiB' 65536, '1 MiB' 1048576)
set xlabel 'message'
set format y '%g'
# Rows with points in the column.
have(column) = system(sprintf("cd '%s' && for row in %s; do test -s $row && " \
	."awk '$%d != \"NaN\" { some = 1 } END { exit !some }' $row && echo $row; done", data, rows, column))
index_of(row) = sum [i=1:words(rows)] (word(rows, i) eq row ? i : 0)
set multiplot layout 1,2
do for [column=2:3] {
	set title column == 2 ? left : right
	if (column == 2) { set key bottom left } else { set key bottom right }
	shown = have(column)
	if (strlen(shown)) { plot for [row in shown] sprintf('%s/%s', data, row) using 1:column with linespoints linewidth 2 \
		pointtype 7 dashtype dash[index_of(row)] linecolor rgb colour[index_of(row)] title row } else { set multiplot next }
}
unset multiplot
