/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of the raw baselines. */
#include "raw_common.h"

#include "app.h"

#include <sched.h>

#define LIMIT_NS_MAX (24 * 3600 * PLX_NS_PER_S)
#define OPTIONS_MAX  20

static struct raw_options values;
static const char *listen_at, *connect_to;
static unsigned cq, idle;
static bool count_given, idle_given, help;

static const char *const cqs[] = {"fd", "none", NULL};
static const char *const idles[] = {"poll", "event", NULL};

/* Options of every baseline. */
static const struct plx_option common[] = {
	PLX_TEXT("listen", "ADDR", &listen_at,
		 "be the server, which takes the size from its client and ends with it"),
	PLX_TEXT("connect", "ADDR", &connect_to, "be the client, and measure"),
	PLX_SIZE("size", "N", &values.size, 1, RAW_SIZE_MAX, "bytes of a message (default 64)"),
	PLX_TIME("duration", "S", &values.duration_ns, PLX_NS_PER_MS, LIMIT_NS_MAX,
		 "measure that long (default 2s)"),
	PLX_UINT("count", "N", &values.count, 1, 0, "measure that many", .given = &count_given),
	PLX_UINT("warmup", "N", &values.warmup, 0, 0, "before that (default 1000)"),
	PLX_UINT("cpu", "N", &values.cpu, 0, CPU_SETSIZE - 1, "run on CPU N alone"),
	PLX_TEXT("out", "DIR", &values.out,
		 "write NAME.json there, and of round trips NAME.hgrm and NAME.csv"),
	PLX_TEXT("name", "NAME", &values.name, "of the run (default that of the program)"),
	PLX_TIME("wait", "S", &values.wait_ns, PLX_NS_PER_MS, LIMIT_NS_MAX,
		 "how long a server waits for its client (default 30s)"),
	PLX_FLAG("help", &help, "this text"),
};

/* Options of some. */
static const struct plx_option choose_provider = PLX_TEXT(
	"provider", "P", &values.provider, "libfabric's provider of FI_EP_MSG: tcp, net, ...");
static const struct plx_option choose_cq = PLX_CHOICE(
	"cq", "KIND", &cq, cqs, "completion queue: fd (can sleep) or none (default fd)");
static const struct plx_option choose_idle = PLX_CHOICE(
	"idle", "HOW", &idle, idles,
	"poll, or event: sleep until a message is there (default poll)", .given = &idle_given);
static const struct plx_option choose_copy = PLX_FLAG(
	"copy", &values.copy, "client: send copies, not from where messages lie");
static const struct plx_option stream[] = {
	PLX_UINT("window", "N", &values.window, 1, RAW_POSTED_MAX,
		 "sends in flight, unless injected (default by size)"),
	PLX_UINT("posted", "N", &values.posted, 1, RAW_POSTED_MAX,
		 "server: receives posted ahead (default by size)"),
};

static void collect(const struct raw_program *program, struct plx_option *table)
{
	memcpy(table, common, sizeof(common));
	table += PLX_ARRAY_LEN(common);
	if (program->choose_provider)
		*table++ = choose_provider;
	if (program->choose_cq)
		*table++ = choose_cq;
	if (program->choose_idle)
		*table++ = choose_idle;
	if (program->choose_copy)
		*table++ = choose_copy;
	if (program->stream) {
		memcpy(table, stream, sizeof(stream));
		table += PLX_ARRAY_LEN(stream);
	}
	*table = (struct plx_option)PLX_OPTIONS_END;
}

static const char *address_of(const struct raw_program *program)
{
	return program->address_is_a_name ? "NAME" : "HOST:PORT";
}

static void print_help(const struct raw_program *program, const struct plx_app *app)
{
	const char *address = address_of(program);

	printf("Usage: %s --listen %s | --connect %s [OPTION]...\n"
	       "%s without any framework, both sides with idle policy '%s'.\n",
	       program->name, address, address, program->stream ? "Messages one way" : "Ping-pong",
	       values.idle);
	plx_app_print_options(app, stdout);
	printf("Exit status: 0 done, 1 failed, 2 usage, 3 ran, but its figures do not add up.\n");
}

static int set_address(const struct raw_program *program)
{
	const char *text = listen_at ? listen_at : connect_to;

	if (listen_at && connect_to)
		return plx_fail(EINVAL, "give one of --listen and --connect, once");
	if (!text)
		return plx_fail(EINVAL, "give --listen %s or --connect %s", address_of(program),
				address_of(program));
	values.address = text;
	values.listen = listen_at != NULL;
	if (program->address_is_a_name) {
		snprintf(values.host, sizeof(values.host), "%s", text);
		return 0;
	}

	const char *colon = strrchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : 0;
	if (!colon || length >= sizeof(values.host) || strlen(colon + 1) >= sizeof(values.port))
		return plx_fail(EINVAL, "%s: HOST:PORT is needed, IPv6 as [::1]:PORT", text);
	if (length > 1 && text[0] == '[' && text[length - 1] == ']') {
		text++;
		length -= 2;
	}
	memcpy(values.host, text, length);
	strcpy(values.port, colon + 1);
	return 0;
}

static int check(const struct raw_program *program)
{
	if (set_address(program) != 0)
		return -EINVAL;
	if (count_given)
		values.duration_ns = 0;
	if (program->fixed_size && values.size != program->fixed_size)
		return plx_fail(EINVAL, "--size %llu: %s has messages of %llu B alone",
				(unsigned long long)values.size, program->name,
				(unsigned long long)program->fixed_size);
	values.cq_cannot_sleep = cq != 0;
	values.sleeps = idle != 0;
	if (idle_given)
		values.idle = idles[idle];
	if (values.sleeps && values.cq_cannot_sleep)
		return plx_fail(EINVAL, "--idle event needs --cq fd: one of none cannot sleep");
	return 0;
}

int raw_parse(int argc, char **argv, const struct raw_program *program, struct raw_options *options)
{
	struct plx_option table[OPTIONS_MAX];
	const struct plx_app app = {.name = program->name, .options = table};
	int rc;

	values = *options;
	collect(program, table);
	rc = plx_app_parse(argc - 1, argv + 1, &app);
	if (rc == 0 && help) {
		print_help(program, &app);
		return 1;
	}
	rc = rc ? rc : check(program);
	*options = values;
	return rc;
}
