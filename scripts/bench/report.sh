# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# From the runs to tables, plots and the report. Sourced by bench.sh.
# shellcheck disable=SC2154

# Runs -> summary.json, and rtt.json with every single run beside the medians.
summarize()
{
	jq -s --slurpfile environment "$out/environment.json" \
		--slurpfile hiccups "$out/hiccups.json" \
		--slurpfile failures "$out/failures.json" \
		--arg fi_provider "$fi_provider" \
		-f "$here/summary.jq" "$out/runs/all.ndjson" >"$out/summary.json" &&
		jq --slurpfile every "$out/runs/all.ndjson" \
			'{schema, part: "rtt", unit, valid, reason, failures, bars, runs, every_run: $every}' \
			"$out/summary.json" >"$out/rtt.json"
}

# 65536 -> 64 KiB
size_words()
{
	if (($1 >= 1 << 20 && $1 % (1 << 20) == 0)); then
		echo "$(($1 >> 20)) MiB"
	elif (($1 >= 1024 && $1 % 1024 == 0)); then
		echo "$(($1 >> 10)) KiB"
	else
		echo "$1 B"
	fi
}

# Plots ----------------------------------------------------------------------------------------

# The points of a .hgrm: 1/(1-p) and microseconds.
percentile_points()
{
	awk 'NF == 4 && $1 + 0 == $1 { print $4, $1 }' "$1"
}

# A histogram's CSV gathered into bins 2 % wide, so that all sizes of bucket look alike: the bin's
# middle in microseconds, and its share in per cent. The last half per cent, which may lie a
# thousand times further out, is for the percentile plot.
histogram_points()
{
	awk -F, 'NR > 1 {
			bin = int(log(($1 + $2) / 2 + 1) / log(1.02))
			sum[bin] += $3
			total += $3
			if (least == "" || bin < least) least = bin
			if (bin > greatest) greatest = bin
		}
		END {
			for (bin = least - 1; bin <= greatest + 1 && seen <= total * 0.995; bin++) {
				print exp((bin + 0.5) * log(1.02)) / 1000, sum[bin] / total * 100
				seen += sum[bin]
			}
		}' "$1"
}

# One percentile plot and one histogram for a size.
plot_size()
{
	local size=$1 data=$out/plots/data row run words kind format status=0

	words=$(size_words "$size")
	mkdir -p "$data"
	rm -f "$data"/*
	while read -r row run; do
		percentile_points "$out/$run/$row.hgrm" >"$data/percentiles.$row"
		histogram_points "$out/$run/$row.csv" >"$data/histogram.$row"
	done < <(jq -r --argjson size "$size" \
		'.runs[] | select(.size_bytes == $size) | "\(.name) \(.run)"' "$out/summary.json")
	for kind in percentiles histogram; do
		for format in svg png; do
			timeout 60 gnuplot -e "data='$data'; size='$words'; bytes='$size'; format='$format'" \
				-e "target='$out/plots/$kind-$size.$format'" "$here/$kind.gp" \
				</dev/null >>"$out/plots/gnuplot.log" 2>&1 || status=1
		done
	done
	rm -rf "$data"
	return $status
}

plot_all()
{
	local size status=0

	mkdir -p "$out/plots"
	: >"$out/plots/gnuplot.log"
	while read -r size; do
		plot_size "$size" || status=1
	done < <(jq '.runs | map(.size_bytes) | unique[]' "$out/summary.json")
	[[ -s $out/plots/gnuplot.log ]] || rm -f "$out/plots/gnuplot.log"
	return $status
}

# The terminal ---------------------------------------------------------------------------------

print_table()
{
	local format='%-11s %9s %9s %9s %9s %9s %9s  %-17s %6s\n' last='' size row cells

	while read -r size row cells; do
		if [[ $size != "$last" ]]; then
			say
			# shellcheck disable=SC2059
			printf "$format" "$(size_words "$size")" min p50 p90 p99 p99.9 max 'p50 over rounds' 'x raw'
			last=$size
		fi
		# shellcheck disable=SC2059,SC2086
		printf "$format" "$row" $cells
	done < <(jq -r '
		def us: if . == null then "n/a" elif . >= 1000000 then . / 1000 | round | tostring
			else . / 10 | round | "\(. / 100 | floor).\(. % 100 + 100 | tostring | .[1:])" end;
		.runs[] | "\(.size_bytes) \(.name) \(.min_ns | us) \(.p50_ns | us) \(.p90_ns | us) " +
			"\(.p99_ns | us) \(.p99_9_ns | us) \(.max_ns | us) " +
			"\(.p50_least_ns | us)..\(.p50_greatest_ns | us) \(.ratio_to_raw // "-")"' "$out/summary.json")
}

print_summary()
{
	say
	say "Full round trips, us; medians over $rounds rounds. x raw: p50 over raw-fi-tcp's (its own: over raw-tcp's)."
	print_table
	say
	cat "$out/hiccups.txt"
	say
	jq -r '
		(.bars[] | "\(if .ok then "reached" elif .gates then "MISSED " else "above  " end)  " +
			"\(.row) at \(.size_bytes) B is \(.ratio) x \(.over) (at most \(.limit)" +
			"\(if .gates then "" else "; a bar for net, shown only" end))"),
		(if (.platform_lost // 0) <= 0.01 then empty
		 else "\nnote: others had \(.platform_lost * 1000 | round / 10) % of a CPU before the runs began: " +
			"this host is busy, and these figures tell of that" end),
		(if .valid then empty else "\nINVALID: \(.reason)" end),
		(if .baseline_checked then empty
		 else "\nnote: raw-fi-tcp was not checked against raw-tcp, as 64 B was not measured with both" end),
		(.failures[] | "\nFAILED: \(.)")' "$out/summary.json"
}

# print_comparison DIR: p50 and p99 of every row over those of an earlier run.
print_comparison()
{
	local format='%-11s %9s  %9s %9s %7s  %9s %9s %7s\n'

	say
	say "Compared with $1: p50 and p99 before and now, us"
	# shellcheck disable=SC2059
	printf "$format" row size 'p50 then' now ratio 'p99 then' now ratio
	while read -r row size cells; do
		# shellcheck disable=SC2059,SC2086
		printf "$format" "$row" "$(size_words "$size" | tr -d ' ')" $cells
	done < <(jq -r --slurpfile before "$1/summary.json" '
		def us: if . == null then "n/a" elif . >= 1000000 then . / 1000 | round | tostring
			else . / 10 | round | "\(. / 100 | floor).\(. % 100 + 100 | tostring | .[1:])" end;
		def over(b): if . and b then . / b * 1000 | round / 1000 else "n/a" end;
		.runs[] | . as $now
		| $before[0].runs[] | select(.name == $now.name and .size_bytes == $now.size_bytes) | . as $was
		| "\(.name) \(.size_bytes) \($was.p50_ns | us) \($now.p50_ns | us) " +
		  "\(($now.p50_ns) | over($was.p50_ns)) \($was.p99_ns | us) \($now.p99_ns | us) " +
		  "\(($now.p99_ns) | over($was.p99_ns))"' "$out/summary.json")
}

# The report -----------------------------------------------------------------------------------

# A plot's SVG without the lines that only a file of its own has.
inline_svg()
{
	[[ -r $1 ]] || return 0
	sed -e '/^<?xml/d' -e '/^<!DOCTYPE/,/>$/d' "$1"
}

write_report()
{
	local size

	{
		cat "$here/report-head.html"
		jq -r -f "$here/report.jq" "$out/summary.json"
		while read -r size; do
			printf '<h2>%s</h2>\n' "$(size_words "$size")"
			inline_svg "$out/plots/percentiles-$size.svg"
			inline_svg "$out/plots/histogram-$size.svg"
		done < <(jq '.runs | map(.size_bytes) | unique[]' "$out/summary.json")
		printf '</body>\n</html>\n'
	} >"$out/report.html"
}
