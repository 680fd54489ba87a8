# SPDX-License-Identifier: BSD-3-Clause
"""Plots by gnuplot, as SVG and PNG: at most six lines each, with their names at their ends."""
import math
import subprocess

from bench import stats
from bench.stats import read_histogram

# Okabe and Ito's colours, which all readers can distinguish; Pollux's are the warm ones.
OURS, OTHERS = ('#d55e00', '#e69f00', '#cc79a7'), ('#0072b2', '#009e73', '#56b4e9', '#000000')
LINES_MAX = 6
WIDTH, FONT = 700, 17  # readable at 500 pixels
PANEL_HEIGHT = 330
LABEL_GAP = 0.075      # of a panel's height, between two names
SIZES = "'64 B' 64, '1 KiB' 1024, '64 KiB' 65536, '1 MiB' 1048576"


def colours(rows):
    """One for each row, given as (key, whether it is Pollux's)."""
    left = {True: list(OURS), False: list(OTHERS)}
    return {key: (left[ours] or left[not ours] or ['#888888']).pop(0) for key, ours in rows}


def gnuplot(out, name, height, script):
    """Draw plots/NAME.svg and .png. Runs inside the folder, whose name may contain any character."""
    folder = out / 'plots'
    folder.mkdir(exist_ok=True)
    for kind, terminal in (('svg', f"svg size {WIDTH},{height} font 'DejaVu Sans,{FONT}' background '#ffffff' name "
                            f"'{''.join(c if c.isalnum() else '_' for c in name)}'"),
                           ('png', f"pngcairo size {WIDTH},{height} font 'DejaVu Sans,{FONT * 3 // 4}'")):
        lines = [f'set terminal {terminal}', f"set output '{name}.{kind}'", "set border 3 linecolor '#555555'",
                 'set tics nomirror', "set grid linetype 1 linewidth 1 linecolor '#dddddd'", 'set key off', *script]
        try:
            subprocess.run(['gnuplot'], input='\n'.join(lines), text=True, cwd=folder, capture_output=True, timeout=60,
                           check=True)
        except (OSError, subprocess.SubprocessError) as error:
            return [f"plots/{name}: {(getattr(error, 'stderr', '') or str(error)).strip().splitlines()[-1]}"]
    return []


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def data(name, points):
    return [f'${name} << END', *(' '.join(f'{value:.6g}' for value in point) for point in points), 'END']


def panel(prefix, y_title, series):
    """series: (name, colour, points). The names stand at the ends of their lines, apart from each other."""
    values = [y for _, _, points in series for _, y in points]
    logarithmic = min(values) > 0 and max(values) > 10 * min(values)
    low, high, scale = 0, max(values) * 1.05 or 1, float
    if logarithmic:
        low, high, scale = min(values) / 1.3, max(values) * 1.3, math.log
    ends = [(scale(points[-1][1]) - scale(low)) / (scale(high) - scale(low)) for _, _, points in series]
    script, lines, height = [], [], -1
    for index in sorted(range(len(ends)), key=ends.__getitem__):
        name, colour, points = series[index]
        height = max(ends[index], height + LABEL_GAP)
        script += data(f'{prefix}{index}', points)
        script.append(f'set label {index + 1} {quoted(name)} at graph 1.02, graph {height:.3f} noenhanced '
                      f"textcolor '{colour}'")
        lines.append(f"${prefix}{index} using 1:2 with linespoints linewidth 3 pointtype 7 pointsize "
                     f"{'0' if len(points) > 20 else '0.7'} linecolor rgb '{colour}'")
    return [*script, f'set title {quoted(y_title)} noenhanced', f'set yrange [{low:.6g}:{high:.6g}]',
            'set logscale y' if logarithmic else 'unset logscale y', f"plot {', '.join(lines)}", 'unset label']


def panels(out, name, x_title, x_tics, found):
    """found: (title, series) of each panel; they stand above each other."""
    found = [(title, series) for title, series in found if series]
    if not found:
        return []
    longest = max(len(name) for _, series in found for name, _, _ in series)
    script = [f'set multiplot layout {len(found)},1', f"set xlabel '{x_title}' noenhanced", 'set logscale x',
              f'set rmargin {longest + 4}', *([f'set xtics ({x_tics})'] if x_tics else [])]
    for index, (title, series) in enumerate(found):
        script += panel(f'p{index}_', title, series)
    return gnuplot(out, name, PANEL_HEIGHT * len(found), script + ['unset multiplot'])


def plot(out, name, plot, rows, label_of):
    """A part's own plot: see part.Plot."""
    rows = [row for row in rows if row['state'] == rows[0]['state'] and plot.when(row)]  # that of most runs
    found = {line: [row for row in rows if row.get(plot.by) == line] for line in plot.lines}
    present = [line for line in plot.lines if found[line]][:LINES_MAX]
    palette = colours([(line, found[line][0].get('ours', True)) for line in present])
    return panels(out, name, plot.x.removesuffix('_bytes'), SIZES if plot.x == 'size_bytes' else '', [
        (stats.label(figure), [(label_of(line), palette[line], sorted(points)) for line in present if (points := [
            (row[plot.x], stats.scaled(row, figure)) for row in found[line] if row.get(figure)])])
        for figure in plot.figures])


# Histograms ------------------------------------------------------------------------------------

def strip(buckets):
    """Bins 2 % wide, so that all buckets look alike: (middle in µs, share of the largest bin), up to p99.5: the
    rest may lie a thousand times further out."""
    bins, total, passed, points = {}, sum(count for _, _, count in buckets), 0, []
    for low, high, count in buckets:
        index = int(math.log((low + high) / 2 + 1) / math.log(1.02))
        bins[index] = bins.get(index, 0) + count
    for index in range(min(bins) - 1, max(bins) + 2):
        points.append((1.02 ** (index + 0.5) / 1000, bins.get(index, 0) / max(bins.values())))
        passed += bins.get(index, 0)
        if passed >= total * 0.995:
            break
    return points + [(points[-1][0] * 1.02, 0)]


def histograms(out, name, title, found):
    """One strip for each of (name, colour, median, buckets)."""
    script = ['set border 1', 'unset ytics', 'set logscale x', f"set title '{title}' noenhanced",
              "set xtics (0.1, 1, 10, 100, '1 ms' 1000, '10 ms' 10000, '100 ms' 100000)", 'set grid noytics',
              "set xlabel 'full round trip, µs, logarithmic; up to p99.5'", f'set yrange [0:{len(found) + 0.05}]',
              f'set lmargin {max(len(label) for label, *_ in found) * 9 // 10 + 1}', 'set rmargin 8']
    strips = []
    for base, (label, colour, median, buckets) in enumerate(reversed(found)):
        script += data(f'h{base}', strip(buckets))
        script += [f"set label {quoted(label + ' ')} at graph 0, first {base + 0.3} right noenhanced textcolor '{colour}'",
                   f"set label '{stats.us(median)}' at graph 1.01, first {base + 0.3} noenhanced"]
        strips.append(f"$h{base} using 1:({base} + 0.88 * $2) with filledcurves y={base} fillcolor rgb '{colour}' "
                      'fillstyle solid 0.85 noborder')
    return gnuplot(out, name, 110 + 46 * len(found), [*script, f"plot {', '.join(strips)}"])


def pooled(out, part, rows, label_of):
    """Histograms of each size and state: plots/PART-SIZE-STATE."""
    trouble, groups = [], {}
    for row in rows:
        if row.get('histogram') and (out / row['histogram']).is_file():
            groups.setdefault((row.get('device'), row['size_bytes'], row['state']), []).append(row)
    for (device, size, state), group in groups.items():
        title = stats.joined(device, f'Round trips of {stats.size(size)}', stats.in_state(state))
        name = '-'.join(filter(None, (part, device, str(size), state)))
        trouble += histograms(out, name, title, [
            (label_of(row['key']), (OURS if row.get('ours', True) else OTHERS)[0], row['p50_ns'],
             read_histogram(out / row['histogram'])) for row in group])
    return trouble
