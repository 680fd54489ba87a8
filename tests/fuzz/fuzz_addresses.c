/* SPDX-License-Identifier: BSD-3-Clause */
/* Any text, as the list of addresses of a session. No crash; each address of a valid list is one to
 * connect to, and the list of these addresses is the same. */
#include "fuzz.h"
#include "plx_session.h"
#include "session.h"

static void require_same(const struct addresses *list)
{
	char text[PLX_SESSION_ADDRESSES_MAX * (PLX_ADDRESS_MAX + 1)] = "";
	struct addresses *again;

	for (unsigned i = 0; i < list->count; i++) {
		must(plx_address_check("the address", list->each[i].text) == 0);
		must(list->each[i].text[0] != ':');
		strcat(strcat(text, i ? "," : ""), list->each[i].text);
	}
	must(addresses_parse(text, &again) == 0);
	must(again->count == list->count);
	for (unsigned i = 0; i < list->count; i++)
		must(strcmp(list->each[i].text, again->each[i].text) == 0);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct addresses *list;
	int rc;

	must(text);
	memcpy(text, data, size);
	text[size] = '\0';
	rc = addresses_parse(text, &list);
	must(rc == 0 || (rc == -EINVAL && plx_error()[0]));
	if (rc == 0) {
		must(list->count >= 1 && list->count <= PLX_SESSION_ADDRESSES_MAX);
		require_same(list);
		free(list);
	}
	free(text);
	return 0;
}
