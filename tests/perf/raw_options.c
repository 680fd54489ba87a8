/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of the raw baselines. */
#include "raw_common.h"

#include "plx_app.h"

#include <getopt.h>
#include <sched.h>
#include <string.h>

#define LIMIT_NS_MAX (24 * 3600 * PLX_NS_PER_S)

enum word {
	LISTEN = 1,
	CONNECT,
	SIZE,
	DURATION,
	COUNT,
	WARMUP,
	CPU,
	OUT,
	NAME,
	WAIT,
	PROVIDER,
	CQ,
	IDLE,
	WINDOW,
	POSTED,
	COPY,
	HELP
};

static const struct option long_options[] = {
	{"listen", required_argument, NULL, LISTEN},
	{"connect", required_argument, NULL, CONNECT},
	{"size", required_argument, NULL, SIZE},
	{"duration", required_argument, NULL, DURATION},
	{"count", required_argument, NULL, COUNT},
	{"warmup", required_argument, NULL, WARMUP},
	{"cpu", required_argument, NULL, CPU},
	{"out", required_argument, NULL, OUT},
	{"name", required_argument, NULL, NAME},
	{"wait", required_argument, NULL, WAIT},
	{"provider", required_argument, NULL, PROVIDER},
	{"cq", required_argument, NULL, CQ},
	{"idle", required_argument, NULL, IDLE},
	{"window", required_argument, NULL, WINDOW},
	{"posted", required_argument, NULL, POSTED},
	{"copy", no_argument, NULL, COPY},
	{"help", no_argument, NULL, HELP},
	{0},
};

static const char *address_of(const struct raw_program *program)
{
	return program->address_is_a_name ? "NAME" : "HOST:PORT";
}

static void print_help(const struct raw_program *program)
{
	const char *what = program->stream ? "messages" : "round trips";

	printf("Usage: %s --listen %s | --connect %s [OPTION]...\n"
	       "%s without any framework, both sides with idle policy '%s'.\n"
	       "  --size N       bytes of a message (64)%s\n"
	       "  --duration S   measure for S seconds (2); --count N for N %s\n"
	       "  --warmup N     %s before that (1000)\n"
	       "  --cpu N        run on CPU N alone\n"
	       "  --out DIR      write NAME.json%s there\n"
	       "  --name NAME    of the run (%s)\n"
	       "  --wait S       how long a server waits for its client (30)\n",
	       program->name, address_of(program), address_of(program),
	       program->stream ? "Messages one way" : "Ping-pong",
	       program->idle ? program->idle : "poll",
	       program->fixed_size ? "; there is no other" : "; K and M may follow", what, what,
	       program->stream ? "" : ", NAME.hgrm and NAME.csv", program->name);
	if (program->choose_provider)
		printf("  --provider P   libfabric's provider of FI_EP_MSG: tcp, net, ... (%s)\n",
		       program->provider);
	if (program->choose_cq)
		printf("  --cq KIND      completion queue: fd (can sleep) or none (fd)\n");
	if (program->choose_idle)
		printf("  --idle HOW     poll, or event: sleep until a message is there (poll)\n");
	if (program->stream)
		printf("  --window N     sends under way where they are not injected (by size)\n"
		       "  --posted N     with --listen: receives posted ahead (by size)\n");
	if (program->choose_copy)
		printf("  --copy         with --connect: send copies, not from where messages "
		       "lie\n");
	printf("The server takes the size from its client, and ends with it.\n"
	       "Exit status: 0 done, 1 failed, 2 usage, 3 ran, but its figures do not add up.\n");
}

static int set_address(const struct raw_program *program, struct raw_options *options, bool listen,
		       const char *text)
{
	if (options->address)
		return plx_fail(EINVAL, "give one of --listen and --connect, once");
	options->address = text;
	options->listen = listen;
	if (program->address_is_a_name)
		return snprintf(options->host, sizeof(options->host), "%s", text) > 0
			     ? 0
			     : plx_fail(EINVAL, "an empty name: give %s", address_of(program));

	const char *colon = strrchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : 0;
	if (!colon || length >= sizeof(options->host) || strlen(colon + 1) >= sizeof(options->port))
		return plx_fail(EINVAL, "%s: HOST:PORT is needed, IPv6 as [::1]:PORT", text);
	if (length > 1 && text[0] == '[' && text[length - 1] == ']') {
		text++;
		length -= 2;
	}
	memcpy(options->host, text, length);
	strcpy(options->port, colon + 1);
	return 0;
}

static int set_waiting(const struct raw_program *program, struct raw_options *options,
		       enum word which, const char *text)
{
	const char *option = which == CQ ? "--cq" : "--idle";
	const char *usual = which == CQ ? "fd" : "poll", *other = which == CQ ? "none" : "event";
	bool chosen = !strcmp(text, other);

	if (which == CQ ? !program->choose_cq : !program->choose_idle)
		return plx_fail(EINVAL, "%s %s: %s has no choice", option, text, program->name);
	if (!chosen && strcmp(text, usual))
		return plx_fail(EINVAL, "%s %s: there are %s and %s", option, text, usual, other);
	if (which == CQ) {
		options->cq_cannot_sleep = chosen;
	} else {
		options->sleeps = chosen;
		options->idle = chosen ? "event" : "poll";
	}
	return 0;
}

static int set_depth(const struct raw_program *program, const char *option, const char *text,
		     uint64_t *value_out)
{
	if (!program->stream)
		return plx_fail(EINVAL, "%s %s: that is for streams", option, text);
	return plx_parse_uint(option, text, 1, RAW_POSTED_MAX, value_out);
}

static int set_option(const struct raw_program *program, struct raw_options *options,
		      enum word which, const char *text)
{
	switch (which) {
	case LISTEN:
	case CONNECT:
		return set_address(program, options, which == LISTEN, text);
	case SIZE:
		return plx_parse_size("--size", text, 1, RAW_SIZE_MAX, &options->size);
	case DURATION:
		return plx_parse_duration("--duration", text, PLX_NS_PER_MS, LIMIT_NS_MAX,
					  &options->duration_ns);
	case COUNT:
		options->duration_ns = 0;
		return plx_parse_uint("--count", text, 1, UINT64_MAX, &options->count);
	case WARMUP:
		return plx_parse_uint("--warmup", text, 0, UINT64_MAX, &options->warmup);
	case CPU:
		return plx_parse_uint("--cpu", text, 0, CPU_SETSIZE - 1, &options->cpu);
	case WAIT:
		return plx_parse_duration("--wait", text, PLX_NS_PER_MS, LIMIT_NS_MAX,
					  &options->wait_ns);
	case OUT:
		options->out = text;
		return 0;
	case NAME:
		options->name = text;
		return 0;
	case PROVIDER:
		if (!program->choose_provider)
			return plx_fail(EINVAL, "--provider %s: %s has no choice", text,
					program->name);
		options->provider = text;
		return 0;
	case CQ:
	case IDLE:
		return set_waiting(program, options, which, text);
	case WINDOW:
		return set_depth(program, "--window", text, &options->window);
	case POSTED:
		return set_depth(program, "--posted", text, &options->posted);
	case COPY:
		if (!program->choose_copy)
			return plx_fail(EINVAL, "--copy: %s has no choice", program->name);
		options->copy = true;
		return 0;
	default:
		return plx_fail(EINVAL, "see --help");
	}
}

static int check(const struct raw_program *program, const struct raw_options *options)
{
	if (!options->address)
		return plx_fail(EINVAL, "give --listen %s or --connect %s", address_of(program),
				address_of(program));
	if (program->fixed_size && options->size != program->fixed_size)
		return plx_fail(EINVAL, "--size %llu: %s has messages of %llu B alone",
				(unsigned long long)options->size, program->name,
				(unsigned long long)program->fixed_size);
	if (options->sleeps && options->cq_cannot_sleep)
		return plx_fail(EINVAL, "--idle event needs --cq fd: one of none cannot sleep");
	return 0;
}

int raw_parse(int argc, char **argv, const struct raw_program *program, struct raw_options *options)
{
	int which;

	while ((which = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (which == HELP) {
			print_help(program);
			return 1;
		}
		int rc = set_option(program, options, (enum word)which, optarg);
		if (rc)
			return rc;
	}
	if (optind < argc)
		return plx_fail(EINVAL, "'%s' is no option; see --help", argv[optind]);
	return check(program, options);
}
