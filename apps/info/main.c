/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-info: what this host offers Pollux, and what to change. Read-only: it starts no lcore and
 * claims no CPU, so it can run next to anything. */
#include "app.h"
#include "info.h"
#include "plx_fabric_driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_USAGE 2

static bool as_json, doctor_only, show_help, show_version;

static const struct plx_option options[] = {
	PLX_FLAG("json", &as_json, "print everything as one JSON object"),
	PLX_FLAG("doctor", &doctor_only, "print only what to change; with --json everything"),
	PLX_FLAG("help", &show_help, "this text, also -h"),
	PLX_FLAG("version", &show_version, "the version, also -V"),
	PLX_OPTIONS_END,
};

static const struct plx_app app = {
	.name = "plx-info",
	.summary = "what this host offers, and what to change for low latency",
	.usage = "  plx-info [--json] [--doctor]",
	.examples = "  plx-info --doctor\n"
		    "  plx-info --json | jq .rdma",
	.more = "man plx-info, or doc/apps/plx-info.md",
	.options = options,
};

static void print_help(void)
{
	printf("%s: %s\n\nUsage:\n%s\n\nOptions:\n", app.name, app.summary, app.usage);
	plx_app_print_options(&app, stdout);
	printf("\nIt takes no EAL options, because it starts no lcore.\n");
	plx_app_print_more(&app);
}

static int gather(struct info *info)
{
	struct plx_topo *topo;
	int err = plx_topo_open(NULL, &topo);

	if (err)
		return err;
	info_gather_cpus("", topo, &info->cpus);
	info_gather_kernel("", &info->kernel);
	info_gather_memory("", &info->memory);
	info_gather_rdma("", &info->rdma);
	info_probe_rdma(&info->rdma);
	plx_topo_close(topo);
	info_gather_fabric(plx_drivers, &info->fabric);
	return 0;
}

static int show(const struct info *info)
{
	struct info_finding findings[INFO_FINDINGS_MAX];
	unsigned count = info_doctor(info, findings, INFO_FINDINGS_MAX);

	if (as_json)
		return info_print_json(info, findings, count, stdout);
	if (!doctor_only)
		info_print(info, stdout);
	info_print_findings(findings, count, stdout);
	return plx_app_flush();
}

/* Expand the short options that every Pollux application has. */
static void lengthen(int argc, char **argv)
{
	static char help[] = "--help", version[] = "--version";

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-h") == 0)
			argv[i] = help;
		else if (strcmp(argv[i], "-V") == 0)
			argv[i] = version;
	}
}

int main(int argc, char **argv)
{
	plx_app_prepare();
	lengthen(argc, argv);
	if (plx_app_parse(argc - 1, argv + 1, &app)) {
		plx_app_fail(&app);
		return STATUS_USAGE;
	}
	if (show_help)
		print_help();
	else if (show_version)
		plx_app_print_version(&app);
	if (show_help || show_version)
		return plx_app_end_output(&app, 0);

	struct info *info = calloc(1, sizeof(*info));
	int err = info ? gather(info) : plx_fail(ENOMEM, "no memory for the report");

	if (!err)
		err = show(info);
	free(info);
	return err ? plx_app_fail(&app) : 0;
}
