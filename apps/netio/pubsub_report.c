/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of either side of netio-pubsub-bench: on standard output, and in --json. */
#include "pubsub.h"

#include <inttypes.h>
#include <jansson.h>

/* object: released. Return: 0; -errno. */
static int write_json(json_t *object)
{
	int rc = plx_app_write_json(pubsub_conf.json_path, object);

	json_decref(object);
	if (rc)
		fprintf(stderr, "netio-pubsub-bench: %s\n", plx_error());
	return rc;
}

int pubsub_report_published(const struct pubsub_published *published)
{
	double seconds = published->seconds, copies = (double)published->copies;
	double gbit_per_s = copies * (double)pubsub_conf.size * 8 / seconds / 1e9;
	double cycles_per_copy = published->cycles / copies;

	plx_app_say("%4" PRIu64 " subscribers %8" PRIu64 " B %10.3f Mcopies/s %8.2f Gbit/s %8.0f "
		    "cycles/copy",
		    pubsub_conf.subscribers, pubsub_conf.size, copies / seconds / 1e6, gbit_per_s,
		    cycles_per_copy);
	if (!pubsub_conf.json_path)
		return 0;
	return write_json(json_pack(
		"{s:s, s:I, s:I, s:I, s:I, s:f, s:o, s:f, s:f, s:f}", "mode",
		pubsub_modes[pubsub_conf.mode], "size_bytes", (json_int_t)pubsub_conf.size,
		"subscribers", (json_int_t)pubsub_conf.subscribers, "messages",
		(json_int_t)published->messages, "copies", (json_int_t)published->copies,
		"messages_per_s", (double)published->messages / seconds, "rate_asked",
		pubsub_conf.run.rate ? json_integer((json_int_t)pubsub_conf.run.rate) : json_null(),
		"mmsg_per_s", copies / seconds / 1e6, "gbit_per_s", gbit_per_s, "cycles_per_copy",
		cycles_per_copy));
}

int pubsub_report_received(const struct pubsub_received *received)
{
	double least = received->least_per_s;

	plx_app_say("%" PRIu64 " subscribers got %" PRIu64 " messages, %" PRIu64 " bytes; %" PRIu64
		    " out of sequence",
		    pubsub_conf.subscribers, received->messages, received->bytes, received->wrong);
	if (received->missed)
		plx_app_say("%" PRIu64 " were missed, and told", received->missed);
	if (received->messages == 0)
		fprintf(stderr, "netio-pubsub-bench: nothing came; --subscribers and --tags have "
				"to be the publisher's\n");
	if (!pubsub_conf.json_path)
		return 0;
	return write_json(json_pack(
		"{s:I, s:I, s:I, s:o}", "subscribers", (json_int_t)pubsub_conf.subscribers,
		"messages", (json_int_t)received->messages, "missed", (json_int_t)received->missed,
		"messages_per_s_least", least > 0 ? json_real(least) : json_null()));
}
