/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses follow TCP's rules: a listener on the wildcard is reachable at every address of the
 * host, and one on :: at IPv4 addresses too. Each address maps to the name of an abstract UNIX
 * socket, "plx_shm:127.0.0.1:7000", which `ss -xl` shows. It vanishes with its socket and is
 * visible in its network namespace only. */
#include "../shm.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

/* The name of one address; it distinguishes link-local addresses of different interfaces. */
static socklen_t write_name(const struct sockaddr_storage *address, struct sockaddr_un *name_out)
{
	struct sockaddr_storage named = *address;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&named;
	char text[ADDRESS_TEXT_BYTES];
	int length;

	if (named.ss_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
		six->sin6_scope_id = 0;
	memset(name_out, 0, sizeof(*name_out));
	name_out->sun_family = AF_UNIX;
	length = snprintf(name_out->sun_path + 1, sizeof(name_out->sun_path) - 1, SHM_NAME ":%s",
			  address_format((const struct sockaddr *)&named, text, sizeof(text)));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
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

int shm_address_names(const struct sockaddr *address, struct sockaddr_un *names_out,
		      socklen_t *lengths_out)
{
	struct sockaddr_storage covering;
	int count = 0;

	if (!prov_address_plain_copy(address, &covering))
		return 0;
	do {
		lengths_out[count] = write_name(&covering, &names_out[count]);
		count++;
	} while (widen(&covering));
	return count;
}

socklen_t shm_address_standin(const struct sockaddr_un *name, socklen_t length, unsigned index,
			      struct sockaddr_un *standin_out)
{
	size_t used = length - offsetof(struct sockaddr_un, sun_path);

	*standin_out = *name;
	if (index)
		length += (socklen_t)snprintf(standin_out->sun_path + used,
					      sizeof(standin_out->sun_path) - used, ".%u", index);
	return length;
}

bool shm_name_is_foreign(const struct sockaddr_un *name, socklen_t length)
{
	uid_t user;
	int rc = plx_unix_owner(name, length, &user);

	return rc == -ESRCH || (rc == 0 && !plx_is_this_user(user) && !shm_params.has_group);
}
