/* SPDX-License-Identifier: BSD-3-Clause */
/* Command lines of real programs: their status, and strings that their output must contain. In a
 * row, %cpu is the first CPU that this process may use, and %dir a folder with the files below. */
#include "folder.h"
#include "plx_topo.h"
#include "process.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#define LIMIT_MS  10000
#define WORDS_MAX 12
#define TEXTS_MAX 4
#define TRIES     50
#define BATCH     8 /* processes at once: they mostly sleep while libfabric loads */

#define PROBE     "tests/apps/cli_probe"
#define INFO      "apps/plx-info"
#define CALL      "apps/plx-call"
#define CAT       "apps/netio-cat"
#define TO        "--connect", "127.0.0.1:1"
#define AT        "--listen", "127.0.0.1:1"
#define TRY       "\ntry cli-probe --help\n"

static const struct {
	const char *name, *text;
} files[] = {
	{"good.conf", "lcores = \"0@%cpu\";\nlog_level = [\"warning\", \"eal:notice\"];\n"},
	{"cpu.conf", "lcores = \"0@4095\";\n"},
};

static char dir[FOLDER_BYTES];
static unsigned first_cpu;

struct row {
	const char *argv[WORDS_MAX]; /* a program below the build folder, then its arguments */
	int status;
	const char *out[TEXTS_MAX]; /* standard output must contain each; none: it is empty */
	const char *err[TEXTS_MAX];
};

/* What only a process can show. tests/unit/eal tests each option and each text. */
/* clang-format off */
static const struct row rows[] = {
	/* help, version: whatever else is on the line, before or after */
	{{PROBE, "--help", "--nonsense"}, 0,
	 {"Usage:\n  cli-probe [EAL options]", "\n  --listen ADDR ", "\n  -l, --lcores LIST ",
	  "(default: lcore 0\n"}, {0}},
	{{PROBE, "-l", "nonsense", "--", "--count", "3", "-h"}, 0, {"Usage:"}, {0}},
	{{PROBE, "--count", "3", "-V"}, 0, {"cli-probe (Pollux ", ", libfabric "}, {0}},

	/* successful runs */
	{{PROBE, "-l0@%cpu", "--"}, 0, {"lcore 0 cpu %cpu main\n"}, {0}},
	{{PROBE, "--lcores", "7@%cpu", "--", "--verbose", "--size=1M", "--colour", "blue"}, 0,
	 {"lcore 7 cpu %cpu main\n", " size 1048576 ", " colour blue"}, {0}},
	{{PROBE, "--verbose", "-l", "7@%cpu", "--count", "9", "--huge=none", "--pause", "1.5s"}, 0,
	 {"lcore 7 cpu %cpu main\n", " count 9 ", " pause 1500000000 "}, {0}},
	{{PROBE, "--verbose", "--count", "9", "--", "--lcores", "7@%cpu", "--size", "1M"}, 0,
	 {"lcore 7 cpu %cpu main\n", " count 9 size 1048576 "}, {0}},
	{{PROBE, "-c", "0x%mask"}, 0, {"lcore %cpu cpu %cpu main\n"}, {0}},
	{{PROBE, "-l", "(1,4)@%cpu", "--main-lcore", "4"}, 0,
	 {"lcore 1 cpu %cpu\n", "lcore 4 cpu %cpu main\n"},
	 {"eal: warning: lcores 1,4 share CPU %cpu: "}},
	{{PROBE, "-l", "(1,4)@%cpu", "--log-level", "error"}, 0, {"lcore 1 cpu %cpu main\n"}, {0}},
	{{PROBE, "--config", "%dir/good.conf"}, 0, {"lcore 0 cpu %cpu main\n"}, {0}},
	{{PROBE, "--huge", "none", "--numa", "any", "--socket-mem", "1"}, 0, {"lcore 0 cpu "}, {0}},

	/* dry runs */
	{{PROBE, "--dry-run", "-l", "(2-3)@%cpu", "--main-lcore", "3", "--huge", "1G", "--numa",
	  "strict", "--log-level=error"}, 0,
	 {"lcore 2: CPU %cpu, NUMA node ", "\nlcore 3: CPU %cpu, ", ", main, idle adaptive:balanced:learned\n",
	  "memory: 1G pages, numa strict, taken when needed\n"}, {0}},
	{{PROBE, "--dry-run", "--socket-mem", "2", "--provider", "tcp"}, 0,
	 {"2048 KiB at start on node 0\n", "links: provider tcp, receive buffers 256 MiB, heartbeat"}, {0}},
	{{PROBE, "--dry-run", "-l", "(2-5)@%cpu", "--idle", "2,4-5:event,adaptive:eco:10%",
	  "--log-level=error"}, 0,
	 {"main, idle event\n", "lcore 3: CPU %cpu, ", ", idle adaptive:eco:learned:10%\n",
	  "idle event\nmemory"}, {0}},

	/* usage errors of each part end with status 2 and one hint */
	{{PROBE, "--lcore-list", "0"}, 2, {0},
	 {"cli-probe: --lcore-list: unknown option; did you mean --lcores? (--help lists all)" TRY}},
	{{PROBE, "--turn", "1"}, 2, {0}, {"cli-probe: --turn: ambiguous; give --turn-max or --turn-time" TRY}},
	{{PROBE, "--lis\x1b[31m", "x"}, 2, {0}, {"cli-probe: --lis\\x1b[31m: unknown option", TRY}},
	{{PROBE, "-l", "0@4095"}, 2, {0}, {"-l 0@4095: CPU 4095 ", "(allowed: ", "); give ", TRY}},
	{{PROBE, "-l", "1-0"}, 2, {0}, {"-l 1-0: column 1: the range ends below its start; ", TRY}},
	{{PROBE, "-l", "node:9999"}, 2, {0}, {"-l node:9999: column 1: there is no CPU on NUMA node 9999 ", TRY}},
	{{PROBE, "-c", "0xg"}, 2, {0}, {"-c 0xg: column 3: ", TRY}},
	{{PROBE, "-l", "0@%cpu", "--main-lcore", "1"}, 2, {0},
	 {"--main-lcore 1: not one of the lcores (0)", TRY}},
	{{PROBE, "--dry-run", "--idle", "sleep"}, 2, {0}, {"--idle sleep: 'sleep' is no way to be idle", TRY}},
	{{PROBE, "--provider", "tpc"}, 2, {0}, {"--provider tpc: unknown provider; give auto or a driver (tcp, shm", TRY}},
	{{PROBE, "--log-level", "x:info"}, 2, {0}, {"unknown component 'x'; there are: ", "eal", TRY}},
	{{PROBE, "--count", "0"}, 2, {0}, {"--count 0: out of range; give 1 to 1000" TRY}},
	{{PROBE, "--hold", "--hang"}, 2, {0}, {"--hold and --hang: give one of them" TRY}},
	{{PROBE, "--config", "%dir/none.conf"}, 2, {0}, {"--config %dir/none.conf: no such file", TRY}},
	{{PROBE, "--config", "%dir/cpu.conf"}, 2, {0}, {"lcores in %dir/cpu.conf:1 0@4095: CPU 4095 ", TRY}},

	/* plx-info, which starts no lcores */
	{{INFO, "-h"}, 0, {"\n  --format text|json ", "\nIt takes no EAL options"}, {0}},
	{{INFO, "-V"}, 0, {"plx-info (Pollux "}, {0}},
	{{INFO, "--doc", "--form", "json"}, 0, {"\"schema\": 1,"}, {0}},
	{{INFO, "-l", "0"}, 2, {0}, {"plx-info: -l: an EAL option; plx-info takes none\ntry plx-info --help\n"}},

	/* plx-call: a short run sleeps, unless the user decides otherwise */
	{{CALL, TO, "--list", "--dry-run"}, 0, {"main, idle event\n"}, {0}},
	{{CALL, TO, "--list", "--dry-run", "--idle", "poll", "-l", "0@%cpu"}, 0,
	 {"lcore 0: CPU %cpu, ", "main, idle poll\n"}, {0}},

	/* netio-cat: the words that say what it does, its tags and addresses */
	{{CAT, TO}, 2, {0}, {"what to do is missing; give publish, subscribe, send, push or recv as the first word"}},
	{{CAT, "publsh", TO}, 2, {0}, {"publsh: unknown word; give publish, subscribe, send, push or recv; did you "
	  "mean publish?\ntry netio-cat --help"}},
	{{CAT, "recv", "--listen", "*:0", "--dry-run"}, 0, {"lcore 0: "}, {0}},
	{{CAT, "recv", "--listen", "tcp://127.0.0.1:7000"}, 2, {0}, {"it needs no scheme"}},
	{{CAT, "recv"}, 2, {0}, {"--listen ADDR is missing"}},
	{{CAT, "push"}, 2, {0}, {"--connect ADDR is missing"}},
	{{CAT, "send", "--connect", "127.0.0.1:0"}, 2, {0}, {"port 0; give 1 to 65535"}},
	{{CAT, "push", "--connect", "*:1"}, 2, {0}, {"give a host, such as"}},
	{{CAT, "push", TO, TO}, 2, {0}, {"--connect 127.0.0.1:1: given twice"}},
	{{CAT, "send", TO, "--connect", "127.0.0.1:2"}, 2, {0}, {"takes one address; give it once"}},
	{{CAT, "recv", AT, "-t", "1"}, 2, {0}, {"--tag: not for recv; leave it out"}},
	{{CAT, "publish", AT, "-t", "1-2"}, 2, {0}, {"takes one tag"}},
	{{CAT, "send", TO, "-t", "1", "-t", "2"}, 2, {0}, {"takes one; give it once"}},
	{{CAT, "subscribe", TO}, 2, {0}, {"for everything give -t all"}},
	{{CAT, "subscribe", TO, "-t", "all", "-t", "0/0"}, 2, {0}, {"--tag 0/0: given twice"}},
	{{CAT, "subscribe", TO, "-t", "7-x"}, 2, {0}, {"--tag 7-x: not a tag"}},
	{{CAT, "subscribe", TO, "-t", "7-9-11"}, 2, {0}, {"--tag 7-9-11: not a tag"}},
	{{CAT, "subscribe", TO, "-t", "0x"}, 2, {0}, {"--tag 0x: not a tag"}},
	{{CAT, "subscribe", TO, "-t", "18446744073709551616"}, 2, {0}, {"more than 64 bits"}},
	{{CAT, "subscribe", TO, "-t", "9-7"}, 2, {0}, {"the lesser tag first"}},
	{{CAT, "subscribe", TO, "-t", "0x11/0xf0"}, 2, {0}, {"give 0x10/0xf0"}},
	{{CAT, "recv", AT, "-e", "raw", "--show-time"}, 2, {0}, {"--show-time: not with -e raw"}},
	{{CAT, "subscribe", TO, "--connect", "127.0.0.1:2", "-t", "all", "-e", "raw"}, 2, {0},
	 {"which publisher a message is of"}},
	{{CAT, "send", TO, "--block", "1K"}, 2, {0}, {"--block: for -e raw"}},
};
/* clang-format on */

/* Copy with %cpu and %dir filled in. */
static char *expand(const char *text)
{
	char *out = NULL;
	size_t size;
	FILE *stream = open_memstream(&out, &size);

	assert_non_null(stream);
	while (*text) {
		if (strncmp(text, "%cpu", 4) == 0) {
			fprintf(stream, "%u", first_cpu);
			text += 4;
		} else if (strncmp(text, "%mask", 5) == 0) {
			fprintf(stream, "%x%.*d", 1U << first_cpu % 4, (int)first_cpu / 4, 0);
			text += 5;
		} else if (strncmp(text, "%dir", 4) == 0) {
			fputs(dir, stream);
			text += 4;
		} else {
			fputc(*text++, stream);
		}
	}
	fclose(stream);
	return out;
}

static void start(struct process *process, const char *const *words)
{
	char path[512], *argv[WORDS_MAX + 1] = {0};
	int rc;

	argv[0] = (char *)process_path(words[0], path, sizeof(path));
	for (int i = 1; i < WORDS_MAX && words[i]; i++)
		argv[i] = expand(words[i]);
	rc = process_start(process, argv);
	for (int i = 1; argv[i]; i++)
		free(argv[i]);
	assert_int_equal(rc, 0);
}

static unsigned missing(const char *name, const char *text, const char *const *parts)
{
	unsigned count = 0;

	if (!parts[0] && text[0]) {
		print_error("%s should be empty\n", name);
		count++;
	}
	for (int i = 0; i < TEXTS_MAX && parts[i]; i++) {
		char *part = expand(parts[i]);

		if (!strstr(text, part)) {
			print_error("%s lacks '%s'\n", name, part);
			count++;
		}
		free(part);
	}
	return count;
}

/* Wait for the row's process and check its results. Frees it. */
static unsigned check_row(const struct row *row, struct process *process)
{
	unsigned wrong = 0;
	int status = process_wait(process, LIMIT_MS);

	if (status != row->status) {
		print_error("status is %d, not %d\n", status, row->status);
		wrong++;
	}
	wrong += missing("stdout", process_out(process), row->out);
	/* Another process may poll our CPU; the warning does not matter for a row. */
	if (row->err[0] || !strstr(process_err(process), "eal: warning: "))
		wrong += missing("stderr", process_err(process), row->err);
	if (wrong) {
		print_error("of:");
		for (int i = 0; i < WORDS_MAX && row->argv[i]; i++)
			print_error(" '%s'", row->argv[i]);
		print_error("\nstdout:\n%s\nstderr:\n%s\n", process_out(process),
			    process_err(process));
	}
	process_free(process);
	return wrong;
}

PLX_TEST(command_lines_behave_as_the_table_states)
{
	struct process batch[BATCH];
	unsigned wrong = 0;

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i += BATCH) {
		size_t end = i + BATCH < PLX_ARRAY_LEN(rows) ? i + BATCH : PLX_ARRAY_LEN(rows);

		for (size_t j = i; j < end; j++)
			start(&batch[j - i], rows[j].argv);
		for (size_t j = i; j < end; j++)
			wrong += check_row(&rows[j], &batch[j - i]);
	}
	assert_int_equal(wrong, 0);
}

static unsigned probe_cpu(struct process *probe)
{
	const char *line = process_line(probe, LIMIT_MS);
	unsigned cpu;

	if (!line)
		fail_msg("no line; stderr: %s", process_err(probe));
	assert_int_equal(sscanf(line, "lcore 0 cpu %u main", &cpu), 1);
	return cpu;
}

/* If others have all CPUs, or all but one, one of the two reports that. */
PLX_TEST(two_processes_without_options_take_different_cpus)
{
	const char *const words[WORDS_MAX] = {PROBE, "--hold"};
	struct process first, second;
	unsigned a, b;

	start(&first, words);
	a = probe_cpu(&first);
	start(&second, words);
	b = probe_cpu(&second);
	if (a == b && !strstr(process_err(&first), "with -l"))
		assert_true(process_err_has(&second, "with -l", LIMIT_MS));
	process_signal(&first, SIGTERM);
	process_signal(&second, SIGINT);
	assert_int_equal(process_wait(&first, LIMIT_MS), 0);
	assert_int_equal(process_wait(&second, LIMIT_MS), 0);
	process_free(&first);
	process_free(&second);
}

/* Claim every free CPU, in fds from count on. Returns the new count. */
static int claim_free(const struct plx_topo *topo, int fds[PLX_CPU_MAX], int count)
{
	PLX_CPUSET_FOREACH (cpu, plx_topo_allowed(topo))
		if (plx_cpu_claim(cpu, &fds[count], NULL) == 0)
			count++;
	return count;
}

/* Another process may release a CPU just before the probe checks: then retry. */
PLX_TEST(a_fully_claimed_host_causes_one_warning)
{
	const char *const words[WORDS_MAX] = {PROBE};
	struct plx_topo *topo;
	struct process probe;
	const char *warning = NULL;
	int fds[PLX_CPU_MAX], count = 0;
	unsigned cpu = PLX_CPU_MAX;

	assert_int_equal(plx_topo_open(NULL, &topo), 0);
	for (int i = 0; i < TRIES && !warning; i++) {
		count = claim_free(topo, fds, count);
		start(&probe, words);
		cpu = probe_cpu(&probe);
		assert_int_equal(process_wait(&probe, LIMIT_MS), 0);
		warning = strstr(process_err(&probe), "eal: warning: no CPU is free of other "
						      "Pollux processes (allowed: ");
		if (!warning)
			process_free(&probe);
	}
	assert_non_null(warning);
	assert_int_equal(cpu, first_cpu);
	assert_non_null(strstr(warning, "with -l\n"));
	assert_null(strstr(strchr(warning, '\n'), "warning:"));
	process_free(&probe);
	while (count)
		close(fds[--count]);
	plx_topo_close(topo);
}

PLX_TEST(a_hanging_lcore_is_reported)
{
	const char *const words[WORDS_MAX] = {PROBE, "-l", "(0-1)@%cpu", "--hang"};
	struct process probe;

	start(&probe, words);
	assert_int_equal(process_wait(&probe, 2 * LIMIT_MS), 1);
	assert_non_null(strstr(process_err(&probe), ": lcore 1 (CPU "));
	assert_non_null(strstr(process_err(&probe), "has not returned after 5.000 s"));
	process_free(&probe);
}

static int make_files(void **state)
{
	cpu_set_t allowed;

	assert_int_equal(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	while (!CPU_ISSET(first_cpu, &allowed))
		first_cpu++;
	folder_make(dir);
	for (size_t i = 0; i < PLX_ARRAY_LEN(files); i++) {
		char name[32], *text = expand(files[i].text);

		snprintf(name, sizeof(name), "/%s", files[i].name);
		folder_put(dir, name, text);
		free(text);
	}
	return 0;
}

static int remove_files(void **state)
{
	return folder_remove(dir);
}

PLX_TEST_MAIN_WITH(make_files, remove_files)
