/* SPDX-License-Identifier: BSD-3-Clause */
/* The request bytes, from the command line. */
#include "call.h"

#include <ctype.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Digits may be grouped: "de ad:be ef". */
static int read_hex(const char *text)
{
	uint8_t *data = call_asked->request = malloc(strlen(text) / 2 + 1);
	size_t digits = 0;

	if (!data)
		return plx_fail(ENOMEM, "out of memory");
	for (const char *at = text; *at; at++) {
		int digit = isdigit((unsigned char)*at) ? *at - '0'
							: tolower((unsigned char)*at) - 'a' + 10;

		if (*at == ' ' || *at == ':')
			continue;
		if (!isxdigit((unsigned char)*at))
			return plx_fail(EINVAL,
					"--hex %s: '%c' is no hexadecimal digit; give pairs of "
					"them, blanks and colons may stand between",
					text, *at);
		data[digits / 2] = (uint8_t)(digits % 2 ? data[digits / 2] << 4 | digit : digit);
		digits++;
	}
	call_asked->request_length = digits / 2;
	return digits % 2
		     ? plx_fail(EINVAL, "--hex %s: %zu digits; give pairs of them", text, digits)
		     : 0;
}

/* A signal ends poll(2), but not read(2). */
static ssize_t read_some(int fd, uint8_t *to, size_t room)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	return poll(&ready, 1, -1) < 0 ? -1 : read(fd, to, room);
}

static int read_all(const char *path, int fd)
{
	size_t length = 0, room = 0;
	ssize_t got;

	do {
		if (length == room) {
			uint8_t *more = realloc(call_asked->request, room = 2 * room + 4096);

			if (!more)
				return plx_fail(ENOMEM, "--file %s: out of memory", path);
			call_asked->request = more;
		}
		got = read_some(fd, call_asked->request + length, room - length);
		if (got < 0)
			return plx_fail(EIO, "--file %s: %s", path, plx_app_stream_error(errno));
		length += (size_t)got;
		if (length > PLX_RPC_PAYLOAD_MAX)
			return plx_fail(EINVAL, "--file %s: more than %llu bytes", path,
					(unsigned long long)PLX_RPC_PAYLOAD_MAX);
	} while (got > 0);
	call_asked->request_length = length;
	return 0;
}

static int read_file(const char *path)
{
	bool is_stdin = strcmp(path, "-") == 0;
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return plx_fail(errno, "--file %s: %s", path, strerror(errno));
	rc = read_all(path, fd);
	if (!is_stdin)
		close(fd);
	return rc;
}

/* Sent as given. Duplicate names in an object are most likely a mistake, and refused. */
static int read_json(const char *text)
{
	int rc = call_json_check(text, strlen(text), true);

	if (rc)
		return plx_fail_in(rc, "--data-json: ");
	call_asked->request = (uint8_t *)strdup(text);
	call_asked->request_length = strlen(text);
	return call_asked->request ? 0 : plx_fail(ENOMEM, "out of memory");
}

int call_read_request(void)
{
	size_t length = call_asked->data ? strlen(call_asked->data)
					 : (size_t)call_asked->size_bytes;

	if (call_asked->hex)
		return read_hex(call_asked->hex);
	if (call_asked->json)
		return read_json(call_asked->json);
	if (call_asked->file)
		return read_file(call_asked->file);
	call_asked->request = calloc(1, length + 1);
	if (!call_asked->request)
		return plx_fail(ENOMEM, "out of memory");
	if (call_asked->data)
		memcpy(call_asked->request, call_asked->data, length);
	call_asked->request_length = length;
	return 0;
}
