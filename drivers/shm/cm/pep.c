/* SPDX-License-Identifier: BSD-3-Clause */
/* Passive endpoints: names of addresses, binding, listening, and incoming connections. */
#include "../shm.h"

#include <unistd.h>

#define PORT_TRIES 64

/* Addresses follow TCP's rules: a listener on the wildcard is reachable at every address of the
 * host, and one on :: at IPv4 addresses too. Each address maps to the name of an abstract UNIX
 * socket, "plx_shm:127.0.0.1:7000", which `ss -xl` shows. It vanishes with its socket and is
 * visible in its network namespace only. */

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

/* A listener that skipped names of other users may hold a later name than the first free one. */
static bool is_held_later(const struct plx_unix_name *first, unsigned index)
{
	while (++index < SHM_NAME_STANDINS) {
		struct plx_unix_name name = shm_name_standin(first, index);
		int fd = plx_unix_socket(&name, SOCK_SEQPACKET | SOCK_NONBLOCK, connect);

		if (fd >= 0)
			close(fd);
		if (fd != -ECONNREFUSED && !shm_name_is_foreign(&name))
			return true;
	}
	return false;
}

/* Return: a socket bound to the address's name or a substitute; -errno. */
static int bind_name(const struct sockaddr_storage *address)
{
	struct plx_unix_name names[3];
	int fd = -FI_EADDRINUSE;

	if (shm_address_names((const struct sockaddr *)address, names) < 1)
		return -FI_EINVAL;
	for (unsigned i = 0; i < SHM_NAME_STANDINS && fd == -FI_EADDRINUSE; i++) {
		struct plx_unix_name name = shm_name_standin(&names[0], i);

		fd = plx_unix_socket(&name, SOCK_SEQPACKET | SOCK_NONBLOCK, bind);
		if (fd >= 0 && is_held_later(&names[0], i)) {
			close(fd);
			return -FI_EADDRINUSE;
		}
		if (fd == -FI_EADDRINUSE && !shm_name_is_foreign(&name))
			return fd;
	}
	return fd;
}

static int bind_free_port(struct sockaddr_storage *address)
{
	int fd = -FI_EADDRINUSE;

	for (int i = 0; i < PORT_TRIES && fd == -FI_EADDRINUSE; i++) {
		int rc = prov_address_find_port(address);

		fd = rc ? rc : bind_name(address);
	}
	return fd;
}

static int open_at(struct prov_pep *pep, struct sockaddr_storage *address)
{
	if (!prov_address_is_local(&shm_prov, (struct sockaddr *)address))
		return -FI_EADDRNOTAVAIL;
	return address_port((struct sockaddr *)address) ? bind_name(address)
							: bind_free_port(address);
}

/* If no listener is found, a connector uses another provider at once. */
static int start(struct prov_pep *pep)
{
	return segment_try() ? 0 : -FI_EOPNOTSUPP;
}

/* A message left unread would reset the connection, and the peer would lose the answer. */
static void reject(struct prov_request *request, const void *data, size_t length)
{
	uint8_t unread;

	shutdown(request->source.fd, SHUT_RD); /* nothing arrives from now on */
	recv(request->source.fd, &unread, sizeof(unread), MSG_DONTWAIT);
	wire_send(request->source.fd, WIRE_REJECT, NULL, data, length);
}

static void request_leave(struct prov_request *request)
{
	offer_release(&((struct shm_request *)request)->offer);
}

static void request_ready(struct prov_request *base)
{
	struct shm_request *request = (struct shm_request *)base;
	uint8_t data[PROV_CM_DATA_MAX];
	enum wire_kind kind;
	uint32_t length;
	int rc = wire_receive(base->source.fd, &kind, &request->offer, data, &length);

	if (rc == -FI_EAGAIN)
		return;
	base->peer = request->offer.address;
	if (rc == -FI_ENOTCONN)
		prov_request_end(base, PLX_ADMIT_LEFT, "it left without a request");
	else if (rc || kind != WIRE_CONNECT)
		prov_request_end(base, PLX_ADMIT_STRANGER, "it sent no request of this provider");
	else
		prov_request_tell(base, data, length);
}

static void incoming(struct prov_pep *pep)
{
	/* The peer's address is not needed. */
	/* cppcheck-suppress nullPointer */
	int fd = accept4(pep->source.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct shm_peer peer;

	if (fd < 0)
		prov_pep_cannot_accept(pep, errno);
	else if (peer_identify(fd, &peer))
		prov_request_add(pep, fd, NULL, peer.user);
	else
		close(fd);
}

const struct prov_pep_ops shm_pep_ops = {
	.bytes = sizeof(struct prov_pep),
	.request_bytes = sizeof(struct shm_request),
	.backlog_max = SHM_BACKLOG,
	.open = open_at,
	.start = start,
	.incoming = incoming,
	.ready = request_ready,
	.reject = reject,
	.leave = request_leave,
};
