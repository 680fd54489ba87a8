/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses follow TCP's rules: a listener on the wildcard is reachable at every address of the
 * host, and one on :: at IPv4 addresses too. Each address maps to the name of an abstract UNIX
 * socket, "plx_shm:127.0.0.1:7000", which `ss -xl` shows. It vanishes with its socket and is
 * visible in its network namespace only. */
#include "../shm.h"

/* The name of one address; it distinguishes link-local addresses of different interfaces. */
static struct plx_unix_name name_of(const struct sockaddr_storage *address)
{
	struct sockaddr_storage named = *address;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&named;
	char text[ADDRESS_TEXT_BYTES];

	if (named.ss_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
		six->sin6_scope_id = 0;
	address_format((const struct sockaddr *)&named, text, sizeof(text));
	return plx_unix_name(SHM_NAME ":%s", text);
}

/* Widen an address to the wildcard of its family, then to the IPv6 wildcard. Return: false if it
 * already is the latter. */
static bool widen(struct sockaddr_storage *address)
{
	bool is_any = address_is_any((struct sockaddr *)address);
	sa_family_t family = is_any ? AF_INET6 : address->ss_family;
	uint16_t port = address_port((struct sockaddr *)address);

	if (is_any && address->ss_family == AF_INET6)
		return false;
	memset(address, 0, sizeof(*address));
	address->ss_family = family;
	address_set_port((struct sockaddr *)address, port);
	return true;
}

int shm_address_names(const struct sockaddr *address, struct plx_unix_name names_out[3])
{
	struct sockaddr_storage covering;
	int count = 0;

	if (!prov_address_plain_copy(address, &covering))
		return 0;
	do
		names_out[count++] = name_of(&covering);
	while (widen(&covering));
	return count;
}

struct plx_unix_name shm_name_standin(const struct plx_unix_name *name, unsigned index)
{
	return index ? plx_unix_name("%s.%u", name->address.sun_path + 1, index) : *name;
}

bool shm_name_is_foreign(const struct plx_unix_name *name)
{
	uid_t user;
	int rc = plx_unix_owner(&name->address, name->length, &user);

	return rc == -ESRCH || (rc == 0 && !plx_is_this_user(user) && !shm_params.has_group);
}
