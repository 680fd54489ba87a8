# SPDX-License-Identifier: BSD-3-Clause
# Shared by all plots. Variables: format, target, frame (name of the picture), height.
if (format eq 'svg') {
	set terminal svg size 960,height font 'DejaVu Sans,13' background '#ffffff' name frame
} else {
	set terminal pngcairo size 1200,height * 5 / 4 font 'DejaVu Sans,11'
}
set output target
set border 3 linecolor '#555555'
set tics nomirror
set grid xtics ytics linetype 1 linewidth 1 linecolor '#dddddd'
