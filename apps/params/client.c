/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of the commands, one at a time. */
#include "params.h"

#include "plx_lcore.h"

#include <stdio.h>
#include <string.h>

#define ERROR_MAX  250                 /* bytes of a service's error text that are shown */
#define TEXT_BYTES (4 * ERROR_MAX + 1) /* as shown */

static void on_done(const struct plx_rpc_result *result, void *arg)
{
	struct answer *answer = arg;

	*answer = (struct answer){
		.status = result->status,
		.code = result->code,
		.data = result->data,
		.length = result->length,
		.may_have_run = result->may_have_run,
		.message = result->message ? plx_buf_ref(result->message) : NULL,
		.done = true,
	};
	plx_loop_quit();
}

/* Escaped for the terminal: the text may contain other clients' units and values. */
static const char *readable(const struct answer *answer, char text[TEXT_BYTES])
{
	FILE *out = fmemopen(text, TEXT_BYTES, "w");

	if (!out)
		return "";
	plx_app_put_text(out, answer->data, answer->length < ERROR_MAX ? answer->length : ERROR_MAX,
			 "\\");
	fclose(out);
	return text;
}

/* Why no service is up; unknown during the first attempt. */
static const char *trouble(const struct plx_rpc_client *client)
{
	const char *text = plx_rpc_client_trouble(client);

	return text[0] ? text
		       : "it has not answered yet: is it a Pollux process, and not stopped? "
			 "--deadline gives it longer";
}

/* Return: 0; -EIO, with a text. */
static int check_answer(struct plx_rpc_client *client, const char *what,
			const struct answer *answer)
{
	char text[TEXT_BYTES];

	if (answer->status == PLX_RPC_OK)
		return 0;
	if (answer->status == PLX_RPC_ERROR)
		return plx_fail(EIO, "%s: %s", what, readable(answer, text));
	if (answer->status == PLX_RPC_UNKNOWN)
		return plx_fail(EIO, "%s is a service, but no plx-params; check --connect",
				params_asked->service);
	if (answer->status == PLX_RPC_PEER_DOWN && !answer->may_have_run)
		return plx_fail(EIO, "no service within %.6g s: %s",
				(double)params_asked->deadline_ns / 1e9, trouble(client));
	return plx_fail(EIO, "%s: the call ended with: %s; %s", what,
			plx_rpc_status_name(answer->status),
			answer->may_have_run ? "it may have been done" : "nothing was done");
}

/* The state is static: a signal may end the wait before the call ends. */
int params_call(struct plx_rpc_client *client, const char *what, uint32_t method, bool once,
		const void *data, size_t length, struct answer *answer_out)
{
	static struct answer answer;
	struct plx_rpc_call call = {
		.method = method,
		.deadline_ns = params_asked->deadline_ns,
		.done = on_done,
		.arg = &answer,
		.key = once ? plx_random_id() : 0,
		.retry = true,
	};
	int rc;

	answer = (struct answer){0};
	rc = plx_rpc_call_start(client, &call, data, length, NULL);
	if (rc)
		return rc;
	plx_loop_run();
	if (!answer.done)
		return plx_fail(EINTR, "interrupted");
	rc = check_answer(client, what, &answer);
	if (rc)
		answer_let_go(&answer);
	else
		*answer_out = answer;
	return rc;
}

void answer_let_go(struct answer *answer)
{
	plx_buf_unref(answer->message);
	answer->message = NULL;
}
