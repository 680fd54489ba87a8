# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Host properties needed to interpret its figures. Sourced by bench.sh.
# shellcheck disable=SC2154

# library_version NAME: of pkg-config.
library_version()
{
	pkg-config --modversion "$1" 2>/dev/null || echo unknown
}

ucx_version()
{
	local version

	version=$(ucx_info -v 2>/dev/null | grep -oEm 1 '[0-9]+\.[0-9]+\.[0-9]+')
	echo "${version:-unknown}"
}

system()
{
	local name

	name=$(sed -n 's/^PRETTY_NAME="\(.*\)"$/\1/p' /etc/os-release 2>/dev/null)
	echo "${name:-unknown}"
}

libfabric_providers()
{
	if command -v fi_info >/dev/null; then
		timeout --foreground 20 fi_info -l 2>/dev/null | sed -n 's/^\([a-z].*\):$/\1/p'
	fi
}

# Steal time in clock ticks, over all CPUs (proc(5)).
steal_ticks()
{
	local steal

	read -r _ _ _ _ _ _ _ _ steal _ </proc/stat
	echo "${steal:-0}"
}

hypervisor()
{
	local name

	name=$(lscpu 2>/dev/null | sed -n 's/^Hypervisor vendor: *//p')
	echo "${name:-none}"
}

first_line()
{
	local line=

	[[ -r $1 ]] && read -r line <"$1"
	echo "${line:-${2:-unknown}}"
}

# Kernel parameters that affect latency.
kernel_options()
{
	first_line /proc/cmdline | tr ' ' '\n' | grep -E \
		'^(isolcpus|nohz_full|rcu_nocbs|irqaffinity|mitigations|idle|intel_idle|intel_pstate|amd_pstate|processor|cpuidle|tsc|clocksource|nosmt|preempt|hugepages|default_hugepagesz|transparent_hugepage)[.=_a-z]*' |
		paste -sd ' ' -
}

environment_begin()
{
	load_before=$(cut -d' ' -f1-3 /proc/loadavg)
	steal_before=$(steal_ticks)
	begun_at=$(date --iso-8601=seconds)
}

environment_end()
{
	local revision governor

	revision=$(git -C "$root" describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)
	governor=$(first_line "/sys/devices/system/cpu/cpu$cpu_client/cpufreq/scaling_governor" 'not visible')
	jq -n \
		--arg date "$begun_at" \
		--arg version "$(sed -n "s/^ *version: '\([^']*\)'.*/\1/p" "$root/meson.build" | head -n 1)" \
		--arg git_revision "$revision" \
		--arg host "$(uname -n)" \
		--arg cpu_model "$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)" \
		--argjson cpu_count "$(nproc)" \
		--argjson server_cpu "$cpu_server" \
		--argjson client_cpu "$cpu_client" \
		--arg kernel "$(uname -sr)" \
		--arg kernel_options "$(kernel_options)" \
		--arg hypervisor "$(hypervisor)" \
		--arg governor "$governor" \
		--arg clocksource "$(first_line /sys/devices/system/clocksource/clocksource0/current_clocksource)" \
		--arg isolated_cpus "$(first_line /sys/devices/system/cpu/isolated none)" \
		--arg system "$(system)" \
		--arg compiler "$("${CC:-cc}" --version 2>/dev/null | head -n 1)" \
		--arg libfabric_version "$(library_version libfabric)" \
		--arg ucx_version "$(ucx_version)" \
		--arg zmq_version "$(library_version libzmq)" \
		--arg libfabric_providers "$(libfabric_providers)" \
		--arg load_before "$load_before" \
		--arg load_after "$(cut -d' ' -f1-3 /proc/loadavg)" \
		--argjson steal_ms "$((($(steal_ticks) - steal_before) * 1000 / $(getconf CLK_TCK)))" \
		--arg peer "${peer:-this host}" \
		--argjson rounds "$rounds" \
		--arg duration_s "$duration" \
		'$ARGS.named
		 | .libfabric_providers |= split("\n")
		 | .duration_s |= tonumber'
}
