/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-call: main.c has the options and makes single calls, request.c reads the request, show.c
 * shows replies, measure.c measures many calls as a load of the engine (lib/app/rpc_load.h). */
#ifndef CALL_H
#define CALL_H

#include "app.h"
#include "plx_rpc.h"

enum call_format { CALL_RAW, CALL_TEXT, CALL_HEX, CALL_JSON };

/** The parsed command line. */
struct call_conf {
	struct plx_app_list services;
	const char *method;      /**< a name, or NULL with a number: */
	const char *method_text; /**< as given */
	uint64_t number, version;
	bool version_given;
	const char *data, *hex, *json, *file; /**< the request; at most one is not NULL */
	uint64_t size_bytes;                  /**< of zeros */
	uint64_t deadline_ns;
	struct plx_measure run; /**< count and duration_ns 0: one call, whose reply is shown */
	uint64_t in_flight;
	bool in_flight_given;
	unsigned format;
	bool list;
	uint8_t *request; /**< the request's bytes, on the heap; NULL: not read yet */
	size_t request_length;
};

#define CALL_IN_FLIGHT_MAX 1000000

/** The command line. call_asked is valid once plx_app_start has run. */
extern const struct plx_app call_app;
extern struct call_conf *const call_asked;

/** Read the request into call_asked->request. Return: 0; -EINVAL; -errno of the file. */
int call_read_request(void);

/** Print a reply to standard output. Return: 0; -EIO; -EPROTO it is not JSON. */
int call_show(const void *data, size_t length, enum call_format format);

/** Print a description as a table. Return: 0; -EPROTO it is not a description. */
int call_show_methods(const void *text, size_t length);

/** Find call_asked->method in a description, and set its number and version: the requested one, or
 * the newest. Return: 0; -EPROTO it is not a description; -ENOENT. */
int call_find_method(const void *text, size_t length);

/** Check that the text is one JSON value (RFC 8259). once: refuse an object that has a name twice.
 * Return: 0; -EINVAL, with a text that names the position. */
int call_json_check(const char *text, size_t length, bool once);

/** Why no service is up, as text. Valid until the next call. */
const char *call_trouble(const struct plx_rpc_client *client);

/** What to do after a call with this status; "" if there is no advice. */
const char *call_hint(enum plx_rpc_status status, bool may_have_run);

/** Measure calls until count, duration or a signal, and report. Ownership: destroys client. Prints
 * its errors. Return: the exit status. */
int call_measure(struct plx_rpc_client *client);

#endif
