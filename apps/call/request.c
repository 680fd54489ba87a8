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
static int read_hex(const char *text, uint8_t **data_out, size_t *length_out)
{
	uint8_t *data = malloc(strlen(text) / 2 + 1);
	size_t digits = 0;

	if (!data)
		return plx_fail(ENOMEM, "out of memory");
	for (const char *at = text; *at; at++) {
		int digit = isdigit((unsigned char)*at) ? *at - '0'
							: tolower((unsigned char)*at) - 'a' + 10;

		if (*at == ' ' || *at == ':')
			continue;
		if (!isxdigit((unsigned char)*at)) {
			free(data);
			return plx_fail(EINVAL,
					"--hex %s: '%c' is no hexadecimal digit; give pairs of "
					"them, blanks and colons may stand between",
					text, *at);
		}
		data[digits / 2] = (uint8_t)(digits % 2 ? data[digits / 2] << 4 | digit : digit);
		digits++;
	}
	if (digits % 2) {
		free(data);
		return plx_fail(EINVAL, "--hex %s: %zu digits; give pairs of them", text, digits);
	}
	*data_out = data;
	*length_out = digits / 2;
	return 0;
}

/* A signal ends poll(2), but not read(2). */
static ssize_t read_some(int fd, uint8_t *to, size_t room)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	return poll(&ready, 1, -1) < 0 ? -1 : read(fd, to, room);
}

/* *data_out: NULL before; the caller frees it, also after a failure. Return: 0; -errno. */
static int read_all(const char *path, int fd, uint8_t **data_out, size_t *length_out)
{
	size_t length = 0, room = 4096;
	ssize_t got;

	do {
		uint8_t *more = length == room || !*data_out ? realloc(*data_out, room *= 2)
							     : *data_out;

		if (!more)
			return plx_fail(ENOMEM, "--file %s: out of memory", path);
		*data_out = more;
		got = read_some(fd, more + length, room - length);
		if (got < 0)
			return plx_fail(EIO, "--file %s: %s", path, plx_app_stream_error(errno));
		length += (size_t)got;
		if (length > PLX_RPC_PAYLOAD_MAX)
			return plx_fail(EINVAL, "--file %s: more than %llu bytes", path,
					(unsigned long long)PLX_RPC_PAYLOAD_MAX);
	} while (got > 0);
	*length_out = length;
	return 0;
}

static int read_file(const char *path, uint8_t **data_out, size_t *length_out)
{
	bool is_stdin = strcmp(path, "-") == 0;
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return plx_fail(errno, "--file %s: %s", path, strerror(errno));
	rc = read_all(path, fd, data_out, length_out);
	if (!is_stdin)
		close(fd);
	return rc;
}

/* Sent as given. Duplicate names in an object are most likely a mistake, and refused. */
static int read_json(const char *text, uint8_t **data_out, size_t *length_out)
{
	int rc = call_json_check(text, strlen(text), true);

	if (rc)
		return plx_fail_in(rc, "--data-json: ");
	*data_out = (uint8_t *)strdup(text);
	*length_out = strlen(text);
	return *data_out ? 0 : plx_fail(ENOMEM, "out of memory");
}

int call_read_request(struct call_conf *conf)
{
	size_t length = conf->data ? strlen(conf->data) : (size_t)conf->size_bytes;

	if (conf->hex)
		return read_hex(conf->hex, &conf->request, &conf->request_length);
	if (conf->json)
		return read_json(conf->json, &conf->request, &conf->request_length);
	if (conf->file)
		return read_file(conf->file, &conf->request, &conf->request_length);
	conf->request = calloc(1, length + 1);
	if (!conf->request)
		return plx_fail(ENOMEM, "out of memory");
	if (conf->data)
		memcpy(conf->request, conf->data, length);
	conf->request_length = length;
	return 0;
}
