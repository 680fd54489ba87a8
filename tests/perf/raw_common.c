/* SPDX-License-Identifier: BSD-3-Clause */
#include "raw_common.h"

#include "plx_app.h"

#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HIGHEST_NS      (10 * PLX_NS_PER_S)
#define DIGITS          3
#define DURATION_NS     (2 * PLX_NS_PER_S)
#define WARMUP_DEFAULT  1000
#define WAIT_DEFAULT_NS (30 * PLX_NS_PER_S)
#define PAGE_BYTES      4096
#define LIMIT_NS_MAX    (24 * 3600 * PLX_NS_PER_S)

atomic_bool raw_stop;

/* Waits ------------------------------------------------------------------------------------ */

static void on_signal(int signal)
{
	/* Relaxed: nothing else is published with it. */
	atomic_store_explicit(&raw_stop, true, memory_order_relaxed);
}

void raw_catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int raw_wait_check(struct raw_wait *wait, uint64_t limit_ns, const char *what)
{
	uint64_t now_ns = plx_now_ns();

	if (!wait->deadline_ns)
		wait->deadline_ns = now_ns + limit_ns;
	/* Relaxed: see raw_run_add. */
	if (atomic_load_explicit(&raw_stop, memory_order_relaxed))
		return plx_fail(EINTR, "stopped while waiting for %s", what);
	if (now_ns > wait->deadline_ns)
		return plx_fail(ETIMEDOUT, "waited %.0f s in vain for %s",
				(double)limit_ns / (double)PLX_NS_PER_S, what);
	return 0;
}

void raw_say_listening(const char *host, const char *port)
{
	printf("listening on %s%s%s\n", host, *port ? ":" : "", port);
	fflush(stdout);
}

/* Buffers ---------------------------------------------------------------------------------- */

uint8_t *raw_buffer(size_t size)
{
	size_t whole = (size + PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES;
	uint8_t *buffer = aligned_alloc(PAGE_BYTES, whole);

	if (!buffer) {
		plx_fail(ENOMEM, "no memory for a buffer of %zu B", size);
		return NULL;
	}
	for (size_t i = 0; i < whole; i++)
		buffer[i] = (uint8_t)(i * 31 + i / 251);
	return buffer;
}

int raw_check_echo(const uint8_t *sent, const uint8_t *received, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (sent[i] != received[i])
			return plx_fail(EBADMSG,
					"byte %zu of the last answer is 0x%02x, not 0x%02x", i,
					received[i], sent[i]);
	return 0;
}

/* Command line ----------------------------------------------------------------------------- */

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
	{"help", no_argument, NULL, HELP},
	{0},
};

static void print_help(const struct raw_program *program)
{
	printf("Usage: %s --listen %s | --connect %s [OPTION]...\n"
	       "Ping-pong without any framework, both sides with idle policy '%s'.\n"
	       "  --size N       bytes of a message (64); K and M may follow\n"
	       "  --duration S   measure for S seconds (2); --count N for N round trips\n"
	       "  --warmup N     round trips before that (1000)\n"
	       "  --cpu N        run on CPU N alone\n"
	       "  --out DIR      write NAME.json, NAME.hgrm and NAME.csv there\n"
	       "  --name NAME    of the run (%s)\n"
	       "  --wait S       how long a server waits for its client (30)\n",
	       program->name, program->address, program->address, program->idle, program->name);
	if (program->choose_provider)
		printf("  --provider P   libfabric's provider: net or tcp (%s)\n"
		       "  --cq KIND      completion queue: fd (can sleep) or none (fd)\n",
		       program->provider);
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
			     : plx_fail(EINVAL, "an empty name: give %s", program->address);

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
		options->cq_cannot_sleep = !strcmp(text, "none");
		return options->cq_cannot_sleep || !strcmp(text, "fd")
			     ? 0
			     : plx_fail(EINVAL, "--cq %s: there are fd and none", text);
	default:
		return plx_fail(EINVAL, "see --help");
	}
}

/* Returns 0, 1 after --help, or -EINVAL. */
static int parse(int argc, char **argv, const struct raw_program *program,
		 struct raw_options *options)
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
	if (!options->address)
		return plx_fail(EINVAL, "give --listen %s or --connect %s", program->address,
				program->address);
	return 0;
}

/* Running ---------------------------------------------------------------------------------- */

static int pin(uint64_t cpu)
{
	cpu_set_t set;

	if (cpu == RAW_CPU_ANY)
		return 0;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return plx_fail(errno, "--cpu %llu: cannot run there: %s", (unsigned long long)cpu,
				strerror(errno));
	return 0;
}

static int report(const struct raw_program *program, const struct raw_options *options,
		  const struct raw_run *run)
{
	struct plx_result result = {
		.name = options->name,
		.provider = options->provider,
		.idle = program->idle,
		.size_bytes = options->size,
		.elapsed_ns = plx_tsc_to_ns(run->last_tsc - run->first_tsc),
		.clock_drift_ppm = plx_clock_drift_ppm(),
		.rtt_ns = &run->hist,
	};

	plx_result_print(&result, stdout, 0);
	int rc = options->out ? plx_result_write(&result, options->out) : 0;
	return rc ? rc : plx_result_check(&result);
}

static int measure(const struct raw_program *program, const struct raw_options *options)
{
	struct raw_run run = {
		.warmup_left = options->warmup,
		.count_left = options->count,
		.duration_tsc = (uint64_t)((double)options->duration_ns / (double)PLX_NS_PER_S *
					   plx_clock_info()->hz),
	};
	int rc = plx_hist_init(&run.hist, HIGHEST_NS, DIGITS);

	if (rc)
		return rc;
	rc = program->ping(options, &run);
	if (!rc)
		rc = report(program, options, &run);
	plx_hist_fini(&run.hist);
	return rc;
}

int raw_main(int argc, char **argv, const struct raw_program *program)
{
	struct raw_options options = {
		.name = program->name,
		.provider = program->provider,
		.size = 64,
		.duration_ns = DURATION_NS,
		.warmup = WARMUP_DEFAULT,
		.wait_ns = WAIT_DEFAULT_NS,
		.cpu = RAW_CPU_ANY,
	};
	int status = 2;

	plx_clock_init();
	int rc = parse(argc, argv, program, &options);
	if (rc > 0)
		return 0;
	if (!rc) {
		status = 1;
		rc = pin(options.cpu);
	}
	if (!rc)
		rc = options.listen ? program->serve(&options) : measure(program, &options);
	if (!rc)
		return 0;
	fprintf(stderr, "%s: %s\n", program->name, plx_error());
	return rc == -ERANGE ? 3 : status; /* it ran, but its figures are not what they claim */
}
