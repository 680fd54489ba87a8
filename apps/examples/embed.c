/* SPDX-License-Identifier: BSD-3-Clause */
/* Pollux inside a program that has its own main loop, here one of poll(2): standard input
 * goes to a server piece by piece, and the answers to standard output.
 * Run it:  embed 127.0.0.1:7000 <FILE      with link_server in another terminal */
#include <plx_eal.h>
#include <plx_fabric.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

struct program {
	struct plx_link *link; /* NULL once it has ended */
	bool is_ready;         /* the server has answered: send the next piece */
	bool failed;
};

static void on_open(struct plx_link *link, void *user)
{
	struct program *program = user;

	program->is_ready = true;
}

static void on_message(struct plx_link *link, struct plx_buf *message, void *user)
{
	fwrite(message->data, 1, message->len, stdout);
	on_open(link, user);
}

static void on_close(struct plx_link *link, enum plx_link_reason reason, const char *text,
		     void *user)
{
	struct program *program = user;

	fprintf(stderr, "embed: %s\n", text);
	program->failed |= reason != PLX_LINK_CLOSED;
	program->link = NULL;
}

/* poll(2) has found some bytes, or the end. */
static void read_input(struct program *program)
{
	char bytes[1024];
	ssize_t length = read(STDIN_FILENO, bytes, sizeof(bytes));

	program->is_ready = false;
	if (length <= 0) {
		plx_link_close(program->link);
	} else if (plx_link_send(program->link, bytes, (size_t)length) != 0) {
		fprintf(stderr, "embed: %s\n", plx_error());
		plx_link_abort(program->link);
	}
}

/* Each round makes one turn of the Pollux loop and polls the program's own descriptors. After a
 * turn without work it waits up to 1 ms for them, so a message may be 1 ms late. Peers give up a
 * program that makes no turn for half a second. */
static int run(struct program *program)
{
	while (program->link && !plx_stopping()) {
		struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
		int work = plx_loop_turn(), found;

		if (work < 0)
			return work;
		found = poll(&input, program->is_ready ? 1 : 0, work > 0 ? 0 : 1);
		if (found < 0 && errno != EINTR)
			return plx_fail(errno, "poll(2) failed");
		if (found > 0 && program->link)
			read_input(program);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct plx_link_events events = {
		.on_open = on_open, .on_message = on_message, .on_close = on_close};
	struct program program = {0};
	struct plx_link_attr attr = {.events = &events, .user = &program};
	struct plx_eal_conf conf = {0};
	int used = plx_eal_parse(argc, argv, &conf), rc;

	if (used < 0)
		fprintf(stderr, "embed: %s\n", plx_error());
	if (used < 0 || argc - used != 2) {
		fprintf(stderr, "usage: embed [EAL options] ADDRESS\n");
		plx_eal_conf_fini(&conf);
		return 2;
	}
	rc = plx_eal_init(&conf);
	plx_stop_on_signals();
	rc = rc ? rc : plx_link_connect(argv[1 + used], &attr, &program.link);
	rc = rc ? rc : run(&program);
	if (rc != 0)
		fprintf(stderr, "embed: %s\n", plx_error());
	plx_eal_conf_fini(&conf);
	return plx_eal_fini() != 0 || rc != 0 || program.failed;
}
