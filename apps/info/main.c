/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-info: what this host offers Pollux, and what to change. Read-only: it starts no lcore and
 * claims no CPU, so it can run next to anything. */
#include "app.h"
#include "info.h"
#include "plx_fabric_driver.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT, JSON };

static const char *const formats[] = {"text", "json", NULL};

static unsigned format = TEXT;
static bool doctor_only;

static const struct plx_option options[] = {
	PLX_CHOICE("format", "text|json", &format, formats,
		   "print text, or everything as one JSON object (default text)"),
	PLX_FLAG("doctor", &doctor_only,
		 "print only what to change; with --format json everything"),
	PLX_OPTIONS_END,
};

static const struct plx_app app = {
	.name = "plx-info",
	.summary = "what this host offers, and what to change for low latency",
	.examples = "  plx-info --doctor\n"
		    "  plx-info --format json | jq .rdma",
	.more = "man plx-info, or doc/apps/plx-info.md",
	.options = options,
};

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
	info_complete(info);
	return 0;
}

static int show(const struct info *info)
{
	if (format == JSON)
		return info_print_json(info, stdout) ?: plx_app_flush();
	if (!doctor_only)
		info_print(info, stdout);
	info_print_findings(info, stdout);
	return plx_app_flush();
}

int main(int argc, char **argv)
{
	int status = plx_app_start_alone(argc, argv, &app);

	if (status != PLX_APP_RUN)
		return status;

	struct info *info = calloc(1, sizeof(*info));
	int err = info ? gather(info) : plx_fail(ENOMEM, "no memory for the report");

	if (!err)
		err = show(info);
	free(info);
	return err ? plx_app_fail(&app) : 0;
}
