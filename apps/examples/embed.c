/* SPDX-License-Identifier: BSD-3-Clause */
/* Pollux inside a program that has its own main loop, here one of poll(2): standard input
 * goes to a server piece by piece, and the answers to standard output.
 * Run it:  embed --connect 127.0.0.1:7000 <FILE      with link_server in another terminal */
#include <plx_app.h>
#include <plx_fabric.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

static const char *address;
static const struct plx_option options[] = {
	PLX_ADDRESS("connect", &address, "host:port of link_server", .required = true),
	PLX_OPTIONS_END,
};
static const struct plx_app app = {
	.name = "embed",
	.summary = "Send standard input to a server, and print its answers.",
	.options = options};

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
		plx_app_fail(&app);
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
	int status = plx_app_start(argc, argv, &app), rc;

	if (status != PLX_APP_RUN)
		return status;
	rc = plx_link_connect(address, &attr, &program.link);
	rc = rc ? rc : run(&program);
	if (rc != 0)
		plx_app_fail(&app);
	return plx_app_finish(&app, rc != 0 || program.failed);
}
