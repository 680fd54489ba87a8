/* SPDX-License-Identifier: BSD-3-Clause */
/* Why there is no reply, and what to do next. */
#include "base_internal.h"
#include "call.h"

#include <stdio.h>
#include <string.h>

const char *call_trouble(const struct plx_rpc_client *client)
{
	static char text[1024];
	const char *trouble = plx_rpc_client_trouble(client);

	if (!trouble[0])
		snprintf(text, sizeof(text),
			 "%s has not answered yet: is it a Pollux process, and not stopped? "
			 "--deadline gives it longer",
			 call_asked->services.at[0]);
	else
		snprintf(text, sizeof(text), "%s%s", trouble,
			 !call_asked->run.process && (strstr(trouble, "it is no service") ||
						      strstr(trouble, ", not " PLX_NAME_RPC))
				 ? "; --process calls the self-test of any Pollux process"
				 : "");
	return text;
}

const char *call_hint(enum plx_rpc_status status, bool may_have_run)
{
	if (status == PLX_RPC_UNKNOWN && call_asked->method)
		return "; --list shows what there is";
	if (status == PLX_RPC_DENIED)
		return "; a service answers self-test calls from its own host only, unless it was "
		       "started with --self-test RATE";
	if (status == PLX_RPC_TOO_BIG && !may_have_run)
		return call_asked->run.process
			     ? "; the service takes no more: a self-test takes up to 64 KiB"
			     : "; the service takes no more: by default services take up to 16 "
			       "MiB";
	return "";
}
