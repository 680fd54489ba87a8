/* SPDX-License-Identifier: BSD-3-Clause */
/* Versions, flags and addresses of fi_getinfo, and the contents of a connection request. */
#include "ask.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#define LAYERED    (UINT64_C(1) << 59)

#define TEST(name) PLX_TEST_WITH(name, set_up, tear_down)

/* Versions and flags ------------------------------------------------------------------------- */

TEST(versions_are_checked)
{
	struct fi_info *info;

	assert_int_equal(prov_getinfo(tested, FI_VERSION(1, 4), NULL, NULL, 0, NULL, &info),
			 -FI_ENODATA);
	assert_int_equal(prov_getinfo(tested, FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION + 1),
				      NULL, NULL, 0, NULL, &info),
			 -FI_ENOSYS);
	assert_int_equal(prov_getinfo(tested, FI_VERSION(1, 5), NULL, NULL, 0, NULL, &info), 0);
	assert_int_equal(info->fabric_attr->api_version, FI_VERSION(1, 5));
	fi_freeinfo(info);
}

TEST(other_providers_cannot_lay_themselves_over_it)
{
	assert_int_equal(refusal(NULL, NULL, LAYERED, NULL), -FI_ENODATA);
}

TEST(name_alone_can_be_asked_for)
{
	struct fi_info *info;

	hints->caps = FI_RMA;
	info = ask_for(NULL, NULL, FI_PROV_ATTR_ONLY, hints);
	assert_null(info->next);
	assert_string_equal(info->fabric_attr->prov_name, tested->libfabric->name);
	assert_int_equal(info->fabric_attr->prov_version, tested->libfabric->version);
	assert_int_equal(info->caps, 0);
	assert_null(info->domain_attr->name);
}

TEST(libfabric_is_left_to_write_the_name)
{
	struct fi_info *info;

	assert_fi_works(tested->libfabric->getinfo(VERSION, NULL, "7000", FI_SOURCE, NULL, &info));
	for (struct fi_info *one = info; one; one = one->next)
		assert_null(one->fabric_attr->prov_name);
	fi_freeinfo(info);
}

/* Addresses ---------------------------------------------------------------------------------- */

static void expect_address(const void *address, size_t length, const char *text, uint16_t port)
{
	const struct sockaddr_in *four = address;
	const struct sockaddr_in6 *six = address;
	char found[INET6_ADDRSTRLEN];

	assert_non_null(address);
	assert_int_equal(length, address_bytes(address));
	inet_ntop(four->sin_family,
		  four->sin_family == AF_INET ? (const void *)&four->sin_addr : &six->sin6_addr,
		  found, sizeof(found));
	assert_string_equal(found, text);
	assert_int_equal(address_port(address), port);
}

static void expect_addresses(const struct fi_info *info, const char *source, uint16_t source_port,
			     const char *dest, uint16_t dest_port)
{
	expect_address(info->src_addr, info->src_addrlen, source, source_port);
	if (dest)
		expect_address(info->dest_addr, info->dest_addrlen, dest, dest_port);
	else
		assert_null(info->dest_addr);
}

static void *make_address(const char *text, uint16_t port, size_t *length_out)
{
	struct sockaddr_in *four = calloc(1, sizeof(*four));

	four->sin_family = AF_INET;
	inet_pton(AF_INET, text, &four->sin_addr);
	four->sin_port = htons(port);
	*length_out = sizeof(*four);
	return four;
}

TEST(without_addresses_the_source_is_the_wildcard)
{
	struct fi_info *info = ask(NULL);

	expect_addresses(info, "0.0.0.0", 0, NULL, 0);
	assert_int_equal(info->addr_format, FI_SOCKADDR_IN);

	hints->addr_format = FI_SOCKADDR;
	info = ask(hints);
	assert_int_equal(info->addr_format, FI_SOCKADDR);
}

TEST(listener_has_node_and_service_as_its_source)
{
	struct fi_info *info = ask_for("127.0.0.1", "7000", FI_SOURCE, NULL);

	assert_null(info->next);
	expect_addresses(info, "127.0.0.1", 7000, NULL, 0);
	info = ask_for("127.0.0.1", NULL, FI_SOURCE, NULL);
	expect_addresses(info, "127.0.0.1", 0, NULL, 0);
}

TEST(listener_without_node_is_on_the_wildcard)
{
	struct fi_info *info;

	hints->addr_format = FI_SOCKADDR_IN;
	info = ask_for(NULL, "7000", FI_SOURCE, hints);
	assert_null(info->next);
	expect_addresses(info, "0.0.0.0", 7000, NULL, 0);
}

TEST(each_local_address_is_answered_in_the_resolvers_order)
{
	struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
	struct fi_info *info = ask_for(NULL, "7000", FI_SOURCE, NULL), *one = info;

	assert_int_equal(getaddrinfo(NULL, "7000", &wanted, &found), 0);
	for (struct addrinfo *a = found; a; a = a->ai_next) {
		if (tested->same_host && !prov_address_is_local(tested->libfabric, a->ai_addr))
			continue;
		assert_non_null(one);
		assert_int_equal(one->src_addrlen, a->ai_addrlen);
		assert_memory_equal(one->src_addr, a->ai_addr, a->ai_addrlen);
		assert_int_equal(one->addr_format,
				 a->ai_family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6);
		one = one->next;
	}
	assert_null(one);
	freeaddrinfo(found);
}

TEST(connector_comes_from_the_address_it_goes_to)
{
	struct fi_info *info = ask_for("127.0.0.1", "7000", 0, NULL);

	assert_null(info->next);
	expect_addresses(info, "127.0.0.1", 0, "127.0.0.1", 7000);
	assert_int_equal(info->addr_format, FI_SOCKADDR_IN);
}

TEST(ipv6_is_answered_as_such)
{
	struct sockaddr_in6 loopback = {.sin6_family = AF_INET6,
					.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct fi_info *info;

	if (!prov_address_is_local(tested->libfabric, (struct sockaddr *)&loopback))
		skip();
	info = ask_for("::1", "7000", 0, NULL);
	expect_addresses(info, "::1", 0, "::1", 7000);
	assert_int_equal(info->addr_format, FI_SOCKADDR_IN6);

	hints->addr_format = FI_SOCKADDR_IN6;
	info = ask(hints);
	expect_addresses(info, "::", 0, NULL, 0);
	assert_int_equal(refusal("127.0.0.1", "7000", 0, hints), -FI_ENODATA);
}

/* Without a route to them, others are refused too. */
TEST(addresses_of_other_hosts_are_refused_where_peers_are_of_this_one)
{
	int rc = tested->same_host ? -FI_ENODATA : 0;

	assert_int_equal(refusal("192.0.2.1", "7000", FI_SOURCE, NULL), rc);
	assert_int_equal(refusal("2001:db8::1", "7000", FI_SOURCE, NULL), rc);
	if (tested->same_host)
		assert_int_equal(refusal("192.0.2.1", "7000", 0, NULL), rc);
	hints->dest_addr = make_address("192.0.2.1", 7000, &hints->dest_addrlen);
	hints->src_addr = make_address("127.0.0.1", 0, &hints->src_addrlen);
	assert_int_equal(refusal(NULL, NULL, 0, hints), rc);
}

TEST(names_are_resolved_unless_they_must_be_numeric)
{
	assert_int_equal(refusal("localhost", "7000", 0, NULL), 0);
	assert_int_equal(refusal("localhost", "7000", FI_NUMERICHOST, NULL), -FI_ENODATA);
	assert_int_equal(refusal("127.0.0.1", "7000", FI_NUMERICHOST, NULL), 0);
}

TEST(source_must_be_named)
{
	assert_int_equal(refusal(NULL, NULL, FI_SOURCE, NULL), -FI_EINVAL);
}

TEST(addresses_of_hints_are_taken)
{
	struct fi_info *info;

	hints->src_addr = make_address("127.0.0.2", 1234, &hints->src_addrlen);
	hints->dest_addr = make_address("127.0.0.1", 7000, &hints->dest_addrlen);
	info = ask(hints);
	expect_addresses(info, "127.0.0.2", 1234, "127.0.0.1", 7000);
}

TEST(node_and_service_stand_above_hints)
{
	struct fi_info *info;

	hints->src_addr = make_address("127.0.0.2", 1234, &hints->src_addrlen);
	hints->dest_addr = make_address("127.0.0.1", 7000, &hints->dest_addrlen);
	info = ask_for("127.0.0.3", "80", 0, hints);
	expect_addresses(info, "127.0.0.2", 1234, "127.0.0.3", 80);
	info = ask_for("127.0.0.3", "80", FI_SOURCE, hints);
	expect_addresses(info, "127.0.0.3", 80, "127.0.0.1", 7000);
}

TEST(malformed_addresses_of_hints_are_refused)
{
	hints->src_addr = make_address("127.0.0.1", 0, &hints->src_addrlen);
	assert_int_equal(refusal(NULL, NULL, 0, hints), 0);
	hints->addr_format = FI_SOCKADDR_IN6;
	assert_int_equal(refusal(NULL, NULL, 0, hints), -FI_ENODATA);
	hints->addr_format = FI_SOCKADDR_IN;
	hints->src_addrlen = 7;
	assert_int_equal(refusal(NULL, NULL, 0, hints), -FI_ENODATA);
	hints->src_addrlen = sizeof(struct sockaddr_in);
	((struct sockaddr *)hints->src_addr)->sa_family = AF_UNIX;
	assert_int_equal(refusal(NULL, NULL, 0, hints), -FI_ENODATA);
}

TEST(addresses_of_hints_that_are_not_used_are_not_looked_at)
{
	hints->src_addr = make_address("127.0.0.1", 0, &hints->src_addrlen);
	hints->src_addrlen = 7;
	assert_int_equal(refusal("127.0.0.1", "7000", FI_SOURCE, hints), 0);
	hints->src_addrlen = sizeof(struct sockaddr_in);
	hints->dest_addr = make_address("127.0.0.1", 7000, &hints->dest_addrlen);
	hints->dest_addrlen = 7;
	assert_int_equal(refusal("127.0.0.1", "7000", 0, hints), 0);
}

TEST(source_and_destination_are_of_one_family)
{
	struct sockaddr_in6 *six = calloc(1, sizeof(*six));

	six->sin6_family = AF_INET6;
	hints->src_addr = six;
	hints->src_addrlen = sizeof(*six);
	assert_int_equal(refusal("127.0.0.1", "7000", 0, hints), -FI_ENODATA);
}

/* Requests ----------------------------------------------------------------------------------- */

TEST(request_carries_both_addresses_and_its_handle)
{
	struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(4321)};
	struct fi_info *of_pep = ask_for("127.0.0.1", NULL, FI_SOURCE, NULL);
	struct sockaddr_storage local = {0};
	struct fid request = {.fclass = FI_CLASS_CONNREQ};
	struct fi_info *info;

	inet_pton(AF_INET, "127.0.0.2", &peer.sin_addr);
	memcpy(&local, of_pep->src_addr, of_pep->src_addrlen);
	address_set_port((struct sockaddr *)&local, 7000);
	info = prov_info_of_request(of_pep, &local, (struct sockaddr *)&peer, &request);
	expect_addresses(info, "127.0.0.1", 7000, "127.0.0.2", 4321);
	assert_ptr_equal(info->handle, &request);
	assert_int_equal(info->addr_format, FI_SOCKADDR_IN);
	assert_string_equal(info->fabric_attr->prov_name, tested->libfabric->name);
	fi_freeinfo(info);

	memset(&local, 0, sizeof(local));
	local.ss_family = AF_INET6;
	info = prov_info_of_request(of_pep, &local, (struct sockaddr *)&peer, &request);
	expect_addresses(info, "::", 0, "127.0.0.2", 4321);
	assert_int_equal(info->addr_format, FI_SOCKADDR);
	fi_freeinfo(info);
}

TESTED_MAIN()
