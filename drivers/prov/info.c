/* SPDX-License-Identifier: BSD-3-Clause */
/* fi_getinfo: one answer per pair of addresses. attr.c fills in the rest of each answer. And the
 * addresses of endpoints. */
#include "prov.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Set when libfabric asks on behalf of a layering provider. Layering needs more than messages, and
 * such providers are used directly instead. */
#define FLAG_LAYERED (UINT64_C(1) << 59)

/* One fi_getinfo call: the query and its answers. */
struct query {
	const struct prov *prov;
	uint32_t version;
	uint64_t flags;
	uint32_t format; /* of addresses: FI_FORMAT_UNSPEC for any */
	const struct fi_info *hints;
	struct sockaddr_storage source, dest; /* may come from hints; ss_family 0: none */
	struct fi_info *first, **last;
};

static bool is_set(const struct sockaddr_storage *address)
{
	return address->ss_family != AF_UNSPEC;
}

static int family_of(uint32_t format)
{
	return format == FI_SOCKADDR_IN  ? AF_INET
	     : format == FI_SOCKADDR_IN6 ? AF_INET6
					 : AF_UNSPEC;
}

/* Answers ---------------------------------------------------------------------------------- */

static int copy_address(const struct sockaddr *address, void **copy_out, size_t *length_out)
{
	size_t length = address_bytes(address);
	void *copy = malloc(length);

	if (!copy)
		return -FI_ENOMEM;
	memcpy(copy, address, length);
	free(*copy_out);
	*copy_out = copy;
	*length_out = length;
	return 0;
}

static int set_addresses(struct fi_info *info, const struct sockaddr *source,
			 const struct sockaddr *dest)
{
	int rc = copy_address(source, &info->src_addr, &info->src_addrlen);

	return rc || !dest ? rc : copy_address(dest, &info->dest_addr, &info->dest_addrlen);
}

static int append_answer(struct query *query, const struct sockaddr_storage *source,
			 const struct sockaddr_storage *dest)
{
	struct fi_info *info = fi_dupinfo(query->prov->most);

	if (!info)
		return -FI_ENOMEM;
	*query->last = info;
	query->last = &info->next;
	prov_info_narrow(query->prov, info, query->hints);
	info->fabric_attr->api_version = query->version;
	if (query->format != FI_SOCKADDR)
		info->addr_format = source->ss_family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
	return set_addresses(info, (const struct sockaddr *)source,
			     is_set(dest) ? (const struct sockaddr *)dest : NULL);
}

/* The source address of a connection. Within one host it equals the destination, as with TCP.
 * Return: whether there is a route. */
static bool choose_source(const struct query *query, const struct sockaddr_storage *dest,
			  struct sockaddr_storage *source_out)
{
	if (!is_set(dest)) {
		memset(source_out, 0, sizeof(*source_out));
		source_out->ss_family = query->format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
		return true;
	}
	if (!query->prov->same_host)
		return address_route((const struct sockaddr *)dest, source_out);
	*source_out = *dest;
	address_set_port((struct sockaddr *)source_out, 0);
	return true;
}

static bool is_local(const struct query *query, const struct sockaddr_storage *address)
{
	return !is_set(address) ||
	       prov_address_is_local(query->prov->libfabric, (const struct sockaddr *)address);
}

/* resolved: from node and service; NULL without them. Unavailable addresses are skipped. */
static int answer(struct query *query, const struct sockaddr_storage *resolved)
{
	struct sockaddr_storage source = query->source, dest = query->dest;

	if (resolved)
		*(query->flags & FI_SOURCE ? &source : &dest) = *resolved;
	if (!is_set(&source) && !choose_source(query, &dest, &source))
		return 0;
	if (is_set(&dest) && dest.ss_family != source.ss_family)
		return 0;
	/* With sockets, binding to an address of another host reports the error. */
	if (query->prov->same_host && (!is_local(query, &dest) || !is_local(query, &source)))
		return 0;
	return append_answer(query, &source, &dest);
}

/* Addresses -------------------------------------------------------------------------------- */

static int answer_names(struct query *query, const char *node, const char *service)
{
	struct addrinfo *found;
	struct addrinfo wanted = {
		.ai_family = family_of(query->format),
		.ai_socktype = SOCK_STREAM,
		.ai_flags = (query->flags & FI_SOURCE ? AI_PASSIVE : 0) |
			    (query->flags & FI_NUMERICHOST ? AI_NUMERICHOST : 0),
	};
	int rc = getaddrinfo(node, service, &wanted, &found);

	if (rc == EAI_MEMORY)
		return -FI_ENOMEM;
	if (rc) {
		prov_log(query->prov->libfabric, FI_LOG_INFO, "an address is not found: %s",
			 gai_strerror(rc));
		return -FI_ENODATA;
	}
	for (struct addrinfo *one = found; one && rc == 0; one = one->ai_next) {
		struct sockaddr_storage resolved = {.ss_family = AF_UNSPEC};

		memcpy(&resolved, one->ai_addr, address_bytes(one->ai_addr));
		rc = is_set(&resolved) ? answer(query, &resolved) : 0;
	}
	freeaddrinfo(found);
	return rc;
}

/* Check and take an address of the hints. */
static bool read_address(const struct query *query, const void *address, size_t length,
			 struct sockaddr_storage *out)
{
	int wanted = family_of(query->format);

	if (!address)
		return true;
	if (prov_address_take(address, length, out) == 0 &&
	    (wanted == AF_UNSPEC || wanted == out->ss_family))
		return true;
	prov_log(query->prov->libfabric, FI_LOG_INFO,
		 "asked for an address that is no IPv4 or IPv6 one of that format");
	return false;
}

/* Node and service override hints. FI_SOURCE decides which of the two addresses they give. */
static bool read_addresses(struct query *query, bool named)
{
	const struct fi_info *hints = query->hints;
	bool is_source = query->flags & FI_SOURCE;

	if (!hints)
		return true;
	query->format = hints->addr_format;
	return (is_source ||
		read_address(query, hints->src_addr, hints->src_addrlen, &query->source)) &&
	       ((named && !is_source) ||
		read_address(query, hints->dest_addr, hints->dest_addrlen, &query->dest));
}

/* ------------------------------------------------------------------------------------------ */

/* FI_PROV_ATTR_ONLY: only that the provider exists. */
static int answer_exists(const struct prov *prov, struct fi_info **info_out)
{
	struct fi_info *info = fi_allocinfo();

	if (!info)
		return -FI_ENOMEM;
	info->fabric_attr->prov_version = prov->libfabric->version;
	*info_out = info;
	return 0;
}

static int check_version(const struct prov *prov, uint32_t version)
{
	if (FI_VERSION_LT(prov->libfabric->fi_version, version))
		return -FI_ENOSYS;
	if (FI_VERSION_GE(version, PROV_API_VERSION))
		return 0;
	prov_log(prov->libfabric, FI_LOG_INFO,
		 "asked for version %u.%u of libfabric's interface; %u.%u is the least",
		 FI_MAJOR(version), FI_MINOR(version), FI_MAJOR(PROV_API_VERSION),
		 FI_MINOR(PROV_API_VERSION));
	return -FI_ENODATA;
}

int prov_getinfo(const struct prov *prov, uint32_t version, const char *node, const char *service,
		 uint64_t flags, const struct fi_info *hints, struct fi_info **info_out)
{
	struct query query = {.prov = prov, .version = version, .flags = flags, .hints = hints};
	bool named = node || service;
	int rc;

	prov_begin(prov, false);
	if (flags & FI_PROV_ATTR_ONLY)
		return answer_exists(prov, info_out);
	if (flags & FI_SOURCE && !named)
		return -FI_EINVAL;
	rc = check_version(prov, version);
	if (rc)
		return rc;
	if (flags & FLAG_LAYERED || (hints && !prov_hints_fit(prov, hints)) ||
	    !read_addresses(&query, named))
		return -FI_ENODATA;

	query.last = &query.first;
	rc = named ? answer_names(&query, node, service) : answer(&query, NULL);
	if (rc == 0 && !query.first)
		rc = -FI_ENODATA;
	if (rc)
		fi_freeinfo(query.first);
	else
		*info_out = query.first;
	return rc;
}

/* The families differ when IPv4 arrives at a listener on ::. */
struct fi_info *prov_info_of_request(const struct fi_info *pep_info,
				     const struct sockaddr_storage *local,
				     const struct sockaddr *peer, struct fid *handle)
{
	struct fi_info *info = fi_dupinfo(pep_info);

	if (!info)
		return NULL;
	if (set_addresses(info, (const struct sockaddr *)local, peer) != 0) {
		fi_freeinfo(info);
		return NULL;
	}
	info->handle = handle;
	if (local->ss_family != peer->sa_family)
		info->addr_format = FI_SOCKADDR;
	return info;
}

/* Endpoint addresses ------------------------------------------------------------------------- */

bool prov_address_plain_copy(const struct sockaddr *address, struct sockaddr_storage *copy_out)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	struct sockaddr_in *four = (struct sockaddr_in *)copy_out;

	memset(copy_out, 0, sizeof(*copy_out));
	if (address->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
		four->sin_family = AF_INET;
		four->sin_port = six->sin6_port;
		memcpy(&four->sin_addr, six->sin6_addr.s6_addr + 12, sizeof(four->sin_addr));
		return true;
	}
	memcpy(copy_out, address, address_bytes(address));
	return address_bytes(address) != 0;
}

/* A socket can bind to such an address, but it names no single host. */
static bool is_many(const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;

	if (address->ss_family == AF_INET6)
		return IN6_IS_ADDR_MULTICAST(&six->sin6_addr);
	return IN_MULTICAST(ntohl(four->sin_addr.s_addr)) ||
	       four->sin_addr.s_addr == htonl(INADDR_BROADCAST);
}

/* bind(2) succeeds for addresses of this host only. The list of getifaddrs(3) lacks most of
 * 127.0.0.0/8. */
bool prov_address_is_local(const struct fi_provider *provider, const struct sockaddr *address)
{
	struct sockaddr_storage copy;

	if (!prov_address_plain_copy(address, &copy) || is_many(&copy))
		return false;
	address_set_port((struct sockaddr *)&copy, 0);

	int fd = socket(copy.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		if (errno != EAFNOSUPPORT)
			prov_log(provider, FI_LOG_WARN,
				 "whether an address is local is not known: %s", strerror(errno));
		return false;
	}

	int rc = bind(fd, (struct sockaddr *)&copy, address_bytes((struct sockaddr *)&copy));

	close(fd);
	return rc == 0;
}

/* The kernel picks the port. Two callers in quick succession may get the same one. */
int prov_address_find_port(struct sockaddr_storage *address)
{
	struct sockaddr_storage found = *address;
	socklen_t bytes = address_bytes((struct sockaddr *)&found);
	int fd = socket(found.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc = 0;

	if (fd < 0)
		return -errno;
	address_set_port((struct sockaddr *)&found, 0);
	if (bind(fd, (struct sockaddr *)&found, bytes) ||
	    getsockname(fd, (struct sockaddr *)&found, &bytes))
		rc = -errno;
	close(fd);
	if (rc == 0)
		address_set_port((struct sockaddr *)address,
				 address_port((struct sockaddr *)&found));
	return rc;
}

int prov_address_give(const struct sockaddr_storage *address, void *out, size_t *bytes)
{
	size_t needed = address_bytes((const struct sockaddr *)address);
	size_t room = *bytes;

	*bytes = needed;
	if (room)
		memcpy(out, address, room < needed ? room : needed);
	return room < needed ? -FI_ETOOSMALL : 0;
}

int prov_address_take(const void *address, size_t bytes, struct sockaddr_storage *out)
{
	const struct sockaddr *from = address;

	if (!from || bytes < sizeof(from->sa_family) ||
	    (from->sa_family != AF_INET && from->sa_family != AF_INET6) ||
	    bytes < address_bytes(from))
		return -FI_EINVAL;
	memset(out, 0, sizeof(*out));
	memcpy(out, from, address_bytes(from));
	return 0;
}
