/* SPDX-License-Identifier: BSD-3-Clause */
/* A round is one attempt per address, without a pause. A back-off follows a round in which no link
 * opened, and a link that ended: then a round begins with the address after that link's. So a peer
 * that accepts and closes at once does not keep the others from their turn. */
#include "plx_session.h"
#include "session.h"

#include <stdio.h>
#include <stdlib.h>

static int bad_list(const char *list, const char *why)
{
	return plx_fail(EINVAL,
			"the addresses '%.300s': %s; give 1 to %d, HOST:PORT, separated by commas",
			list, why, PLX_SESSION_ADDRESSES_MAX);
}

static unsigned count_of(const char *list)
{
	unsigned count = 1;

	for (; (list = strchr(list, ',')) != NULL; list++)
		count++;
	return count;
}

/* The checks of plx_link_connect, which is called later for all but the first. */
static int check(const char *list, const char *address)
{
	int rc = plx_address_check("the address", address);

	if (rc)
		return rc;
	if (address[0] == ':' || strncmp(address, "*:", 2) == 0)
		return bad_list(list, "an address has no host");
	if (strtoul(strrchr(address, ':') + 1, NULL, 10) == 0)
		return bad_list(list, "port 0 is nobody's");
	return 0;
}

/* Copy the address at *at, and move to the one after it. */
static int take(const char *list, const char **at, char *out)
{
	const char *begin = *at + strspn(*at, " ");
	size_t length = strcspn(begin, ",");

	*at = begin + length + (begin[length] == ',');
	if (length == 0)
		return bad_list(list, "one of them is empty");
	if (length >= PLX_ADDRESS_MAX)
		return bad_list(list, "one of them is too long");
	memcpy(out, begin, length);
	out[length] = '\0';
	return check(list, out);
}

int addresses_parse(const char *list, struct addresses **out)
{
	unsigned count = list ? count_of(list) : 0;
	const char *at = list;
	struct addresses *addresses;
	int rc = 0;

	if (count == 0 || count > PLX_SESSION_ADDRESSES_MAX)
		return bad_list(list ?: "(none)", count ? "they are too many" : "there are none");
	addresses = calloc(1, sizeof(*addresses) + count * sizeof(addresses->each[0]));
	if (!addresses)
		return plx_fail(ENOMEM, "out of memory");
	addresses->count = count;
	addresses->refused_here = true;
	addresses->busy_ns = UINT64_MAX;
	for (unsigned i = 0; i < count && rc == 0; i++)
		rc = take(list, &at, addresses->each[i].text);
	if (rc)
		free(addresses);
	else
		*out = addresses;
	return rc;
}

void addresses_opened(struct plx_connector *connector)
{
	struct addresses *addresses = connector->addresses;

	addresses->failed = addresses->count - 1; /* its end is the end of a round */
	for (unsigned i = 0; i < addresses->count; i++)
		addresses->each[i].logged = 0;
}

bool addresses_failed(struct plx_connector *connector)
{
	struct addresses *addresses = connector->addresses;

	addresses->is_due = true;
	addresses->refused_here &= connector->refused_here;
	if (connector->busy_ns < addresses->busy_ns)
		addresses->busy_ns = connector->busy_ns;
	if (++addresses->failed < addresses->count)
		return true;
	connector->refused_here = addresses->refused_here;
	connector->busy_ns = addresses->busy_ns;
	addresses->failed = 0;
	addresses->refused_here = true;
	addresses->busy_ns = UINT64_MAX;
	return false;
}

void addresses_turn(struct plx_connector *connector)
{
	struct addresses *addresses = connector->addresses;

	if (!addresses->is_due)
		return;
	addresses->is_due = false;
	addresses->each[addresses->at].logged = connector->logged;
	addresses->at = (addresses->at + 1) % addresses->count;
	connector->logged = addresses->each[addresses->at].logged;
	snprintf(connector->address, sizeof(connector->address), "%s",
		 addresses->each[addresses->at].text);
}
