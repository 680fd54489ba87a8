# SPDX-License-Identifier: BSD-3-Clause
"""Plots by gnuplot, as SVG and PNG: at most six lines each, with their names at their ends."""
import math
import subprocess

from bench import words
from bench.stats import read_histogram

# Okabe and Ito's colours, which all readers can distinguish; Pollux's are the warm ones.
OURS, OTHERS = ('#d55e00', '#e69f00', '#cc79a7'), ('#0072b2', '#009e73', '#56b4e9', '#000000')
LINES_MAX = 6
WIDTH, FONT = 700, 17  # readable at 500 pixels
PANEL_HEIGHT = 330
LABEL_GAP = 0.075      # of a panel's height, between two names
PERCENTILES = ', '.join(f"'{100 - 100 / x:.6g}' {x}" for x in (1, 10, 100, 1000, 10000, 1000000))
SIZES = "'64 B' 64, '1 KiB' 1024, '64 KiB' 65536, '1 MiB' 1048576"


def colours(rows):
    """One for each row, given as (key, whether it is Pollux's)."""
    left = {True: list(OURS), False: list(OTHERS)}
    return {key: (left[ours] or left[not ours] or ['#888888']).pop(0) for key, ours in rows}


def gnuplot(out, name, height, script):
    """Draw plots/NAME.svg and .png. Runs inside the folder, whose name may contain any character."""
    folder, failed = out / 'plots', ''
    folder.mkdir(exist_ok=True)
    for kind, terminal in (('svg', f"svg size {WIDTH},{height} font 'DejaVu Sans,{FONT}' background '#ffffff' name "
                            f"'{''.join(c if c.isalnum() else '_' for c in name)}'"),
                           ('png', f"pngcairo size {WIDTH},{height} font 'DejaVu Sans,{FONT * 3 // 4}'")):
        lines = [f'set terminal {terminal}', f"set output '{name}.{kind}'", "set border 3 linecolor '#555555'",
                 'set tics nomirror', "set grid linetype 1 linewidth 1 linecolor '#dddddd'", 'set key off', *script]
        try:
            done = subprocess.run(['gnuplot'], input='\n'.join(lines), text=True, cwd=folder, capture_output=True,
                                  timeout=60, check=False)
            failed = failed or (done.stderr if done.returncode else '')
        except (OSError, subprocess.SubprocessError) as error:
            failed = str(error)
    return [f'plots/{name}: {failed.strip().splitlines()[-1]}'] if failed else []


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def data(name, points):
    return [f'${name} << END', *(' '.join(f'{value:.6g}' for value in point) for point in points), 'END']


def panel(prefix, y_title, series, logarithmic):
    """series: (name, colour, points). The names stand at the ends of their lines, apart from each other."""
    values = [y for _, _, points in series for _, y in points]
    low, high = min(values), max(values)
    scale = math.log if logarithmic else float
    if logarithmic:
        low, high = low / 1.3, high * 1.3
    else:
        low, high = 0, high * 1.05 or 1
    script, heights = [], {}
    for index, (name, _, points) in enumerate(series):
        script += data(f'{prefix}{index}', points)
        heights[index] = (scale(points[-1][1]) - scale(low)) / (scale(high) - scale(low))
    lower = -1
    for index in sorted(heights, key=heights.get):
        lower = heights[index] = max(heights[index], lower + LABEL_GAP)
    overflow = max(0, lower - 1)
    for index, (name, colour, _) in enumerate(series):
        script.append(f"set label {index + 1} {quoted(name)} at graph 1.02, graph {heights[index] - overflow:.3f} "
                      f"noenhanced textcolor '{colour}'")
    script += [f'set title {quoted(y_title)} noenhanced', f'set yrange [{low:.6g}:{high:.6g}]',
               'set logscale y' if logarithmic else 'unset logscale y',
               'plot ' + ', '.join(f"${prefix}{index} using 1:2 with linespoints linewidth 3 pointtype 7 pointsize "
                                   f"{'0' if len(points) > 20 else '0.7'} linecolor rgb '{colour}'"
                                   for index, (_, colour, points) in enumerate(series))]
    return script + [f'unset label {index + 1}' for index in range(len(series))]


def panels(out, name, x_title, x_tics, found):
    """found: (title, series) of each panel; they stand above each other."""
    found = [(title, series) for title, series in found if series]
    if not found:
        return []
    longest = max(len(name) for _, series in found for name, _, _ in series)
    script = [f'set multiplot layout {len(found)},1', f"set xlabel '{x_title}' noenhanced", 'set logscale x',
              f'set rmargin {longest + 2}', *([f'set xtics ({x_tics})'] if x_tics else [])]
    for index, (title, series) in enumerate(found):
        values = [y for _, _, points in series for _, y in points]
        script += panel(f'p{index}_', title, series, min(values) > 0 and max(values) > 10 * min(values))
    return gnuplot(out, name, PANEL_HEIGHT * len(found), script + ['unset multiplot'])


def plot(out, plot, rows, label):
    """A part's own plot: see part.Plot."""
    state = rows[0]['state'] if rows else None  # that of most runs
    rows = [row for row in rows if row['state'] == state and plot.when(row)]
    present = [key for key in plot.rows if any(plot.key(row) == key for row in rows)][:LINES_MAX]
    ours = {plot.key(row): row.get('ours', True) for row in rows}
    palette = colours([(key, ours[key]) for key in present])
    found = []
    for title, value in plot.panels:
        series = [(plot.label(key) if plot.label else label(key), palette[key], sorted(points)) for key in present
                  if (points := [(plot.x(row), value(row)) for row in rows if plot.key(row) == key and value(row)])]
        found.append((title, series))
    return panels(out, plot.name, plot.x_title, SIZES if plot.x_title == 'message' else '', found)


# Histograms ------------------------------------------------------------------------------------

def strip(buckets):
    """Bins 2 % wide, so that all buckets look alike: (middle in µs, share of the largest bin), up to p99.5; the
    percentiles show the rest, which may lie a thousand times further out."""
    bins, total, passed, points = {}, 0, 0, []
    for low, high, count in buckets:
        index = int(math.log((low + high) / 2 + 1) / math.log(1.02))
        bins[index] = bins.get(index, 0) + count
        total += count
    for index in range(min(bins) - 1, max(bins) + 2):
        points.append((math.exp((index + 0.5) * math.log(1.02)) / 1000, bins.get(index, 0) / max(bins.values())))
        passed += bins.get(index, 0)
        if passed >= total * 0.995:
            break
    return points + [(points[-1][0] * 1.02, 0)]


def percentile_points(buckets):
    """1/(1-p), and µs."""
    total, passed, points = sum(count for _, _, count in buckets), 0, []
    for _, high, count in buckets:
        passed += count
        points.append((total / (total - passed) if passed < total else total, high / 1000))
    return points


def histograms(out, name, title, found):
    """One strip for each of (name, colour, median, buckets)."""
    script, height = [], 110 + 46 * len(found)
    script += ['set border 1', 'unset ytics', 'set logscale x', f"set title '{title}' noenhanced",
               "set xtics (0.1, 1, 10, 100, '1 ms' 1000, '10 ms' 10000, '100 ms' 100000)",
               "set xlabel 'full round trip, µs, logarithmic; up to p99.5'", f'set yrange [0:{len(found) + 0.05}]',
               f'set lmargin {max(len(label) for label, *_ in found) * 9 // 10 + 1}', 'set rmargin 8',
               'set grid noytics']
    for index, (label, colour, median, buckets) in enumerate(found):
        base = len(found) - index - 1
        script += data(f'h{index}', strip(buckets))
        script += [f"set label {quoted(label + ' ')} at graph 0, first {base + 0.3} right noenhanced "
                   f"textcolor '{colour}'",
                   f"set label '{words.us(median)}' at graph 1.01, first {base + 0.3} noenhanced"]
    script.append('plot ' + ', '.join(
        f"$h{index} using 1:({len(found) - index - 1} + 0.88 * $2) with filledcurves y={len(found) - index - 1} "
        f"fillcolor rgb '{colour}' fillstyle solid 0.85 noborder" for index, (_, colour, _, _) in enumerate(found)))
    return gnuplot(out, name, height, script)


def pooled(out, part, rows, label, lines):
    """Histograms and percentiles of each size and state: plots/KIND-PART-SIZE-STATE. lines: of percentiles."""
    trouble, groups = [], {}
    for row in rows:
        if row.get('histogram') and (out / row['histogram']).is_file():
            groups.setdefault((row['size_bytes'], row['state'], row.get('device', '')), []).append(row)
    for (size, state, device), group in groups.items():
        found = [(label(row['key']), OURS[0] if row.get('ours', True) else OTHERS[0], row['p50_ns'],
                  read_histogram(out / row['histogram'])) for row in group]
        suffix = f"{part}-{device + '-' if device else ''}{size}-{state}"
        title = words.in_state(f'Round trips of {words.size(size)}', state)
        trouble += histograms(out, f'histogram-{suffix}', title, found)
        chosen = [row for row in group if not lines or row['key'] in lines][:LINES_MAX]
        palette = colours([(row['key'], row.get('ours', True)) for row in chosen])
        trouble += panels(out, f'percentiles-{suffix}', 'percentile', PERCENTILES, [(f'{title}, µs', [
            (label(row['key']), palette[row['key']], percentile_points(read_histogram(out / row['histogram'])))
            for row in chosen])])
    return trouble


def changes(out, rows):
    """Ratios of two results and their noise, for --compare."""
    palette = {'better': '#009e73', 'worse': '#d55e00'}
    script = data('changes', [(100 * row['change'], len(rows) - index - 0.5,
                               100 * (row['change'] - (row['noise'] or 0)), 100 * (row['change'] + (row['noise'] or 0)),
                               int(palette.get(row['verdict'], '#888888')[1:], 16)) for index, row in enumerate(rows)])
    names = [words.in_state(f"{row['part']}, {row['key']}, {words.size(row['size_bytes'])}", row['state'])
             for row in rows]
    tics = ', '.join(f"'{name}' {len(rows) - index - 0.5}" for index, name in enumerate(names))
    script += [f'set ytics ({tics}) scale 0 noenhanced', f'set yrange [0:{len(rows)}]', 'set grid noytics',
               f'set lmargin {max(map(len, names))}', "set xlabel 'change of the ratio from A to B, %, and its noise'",
               "set arrow 1 from first 0, graph 0 to first 0, graph 1 nohead linecolor '#555555'",
               'plot $changes using 1:2:3:4:5 with xerrorbars linewidth 2 pointtype 7 linecolor rgb variable']
    return gnuplot(out, 'compare', 120 + 26 * len(rows), script)
