/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: which fi_getinfo answers with, those of a connection request, and which are of this
 * host. */
#include "questions.h"

#include <arpa/inet.h>
#include <stdio.h>

#define LAYERED (UINT64_C(1) << 59)

/* Addresses ---------------------------------------------------------------------------------- */

/* "127.0.0.1:7000" */
static void *make_address(const char *text, size_t *length_out)
{
	struct sockaddr_in *four = calloc(1, sizeof(*four));
	char host[INET_ADDRSTRLEN];

	assert_int_equal(sscanf(text, "%15[0-9.]:%hu", host, &four->sin_port), 2);
	four->sin_family = AF_INET;
	inet_pton(AF_INET, host, &four->sin_addr);
	four->sin_port = htons(four->sin_port);
	*length_out = sizeof(*four);
	return four;
}

/* text: NULL: none. */
static void expect_address(const void *address, size_t length, const char *text)
{
	char found[ADDRESS_TEXT_BYTES];

	if (!text) {
		assert_null(address);
		return;
	}
	assert_non_null(address);
	assert_int_equal(length, address_bytes(address));
	assert_string_equal(address_format(address, found, sizeof(found)), text);
}

static void expect_addresses(const struct fi_info *info, const char *source, const char *dest,
			     uint32_t format)
{
	assert_null(info->next);
	expect_address(info->src_addr, info->src_addrlen, source);
	expect_address(info->dest_addr, info->dest_addrlen, dest);
	assert_int_equal(info->addr_format, format);
}

/* A connector's source is, without a hint, the destination's address. */
TEST(addresses_are_those_of_node_and_service_or_else_of_hints)
{
	static const struct {
		const char *node, *service;
		uint64_t flags;
		uint32_t format; /* of hints; so are the next two */
		const char *wanted_source, *wanted_dest;
		const char *source, *dest; /* of the answer */
		uint32_t found_format;
	} rows[] = {
		{NULL, NULL, 0, 0, NULL, NULL, "0.0.0.0:0", NULL, FI_SOCKADDR_IN},
		{NULL, NULL, 0, FI_SOCKADDR, NULL, NULL, "0.0.0.0:0", NULL, FI_SOCKADDR},
		{"127.0.0.1", "7000", FI_SOURCE, 0, NULL, NULL, "127.0.0.1:7000", NULL,
		 FI_SOCKADDR_IN},
		{"127.0.0.1", NULL, FI_SOURCE, 0, NULL, NULL, "127.0.0.1:0", NULL, FI_SOCKADDR_IN},
		{NULL, "7000", FI_SOURCE, FI_SOCKADDR_IN, NULL, NULL, "0.0.0.0:7000", NULL,
		 FI_SOCKADDR_IN},
		{"127.0.0.1", "7000", 0, 0, NULL, NULL, "127.0.0.1:0", "127.0.0.1:7000",
		 FI_SOCKADDR_IN},
		{NULL, NULL, 0, 0, "127.0.0.2:1234", "127.0.0.1:7000", "127.0.0.2:1234",
		 "127.0.0.1:7000", FI_SOCKADDR_IN},
		{"127.0.0.3", "80", 0, 0, "127.0.0.2:1234", "127.0.0.1:7000", "127.0.0.2:1234",
		 "127.0.0.3:80", FI_SOCKADDR_IN},
		{"127.0.0.3", "80", FI_SOURCE, 0, "127.0.0.2:1234", "127.0.0.1:7000",
		 "127.0.0.3:80", "127.0.0.1:7000", FI_SOCKADDR_IN},
		{NULL, NULL, 0, FI_SOCKADDR_IN6, NULL, NULL, "[::]:0", NULL, FI_SOCKADDR_IN6},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		struct fi_info *wanted = fi_allocinfo();

		wanted->addr_format = rows[i].format;
		if (rows[i].wanted_source)
			wanted->src_addr = make_address(rows[i].wanted_source,
							&wanted->src_addrlen);
		if (rows[i].wanted_dest)
			wanted->dest_addr = make_address(rows[i].wanted_dest,
							 &wanted->dest_addrlen);
		if (rows[i].found_format != FI_SOCKADDR_IN6 || tested_has_ipv6())
			expect_addresses(
				ask_for(rows[i].node, rows[i].service, rows[i].flags, wanted),
				rows[i].source, rows[i].dest, rows[i].found_format);
		fi_freeinfo(wanted);
	}
}

/* Without a route to them, IPv6 addresses of others are refused too. */
TEST(some_questions_are_refused)
{
	int of_other_hosts = tested->same_host ? -FI_ENODATA : 0;
	const struct {
		const char *node, *service;
		uint64_t flags;
		int rc;
	} rows[] = {
		{NULL, NULL, LAYERED, -FI_ENODATA},
		{NULL, NULL, FI_SOURCE, -FI_EINVAL},
		{"localhost", "7000", 0, 0},
		{"localhost", "7000", FI_NUMERICHOST, -FI_ENODATA},
		{"127.0.0.1", "7000", FI_NUMERICHOST, 0},
		{"192.0.2.1", "7000", FI_SOURCE, of_other_hosts},
		{"2001:db8::1", "7000", FI_SOURCE, of_other_hosts},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++)
		assert_int_equal(refusal(rows[i].node, rows[i].service, rows[i].flags, NULL),
				 rows[i].rc);
	if (tested->same_host)
		assert_int_equal(refusal("192.0.2.1", "7000", 0, NULL), -FI_ENODATA);
	hints->dest_addr = make_address("192.0.2.1:7000", &hints->dest_addrlen);
	hints->src_addr = make_address("127.0.0.1:0", &hints->src_addrlen);
	assert_int_equal(refusal(NULL, NULL, 0, hints), of_other_hosts);
}

TEST(malformed_addresses_of_hints_are_refused_unless_unused)
{
	hints->src_addr = make_address("127.0.0.1:0", &hints->src_addrlen);
	assert_int_equal(refusal(NULL, NULL, 0, hints), 0);
	hints->addr_format = FI_SOCKADDR_IN6;
	assert_int_equal(refusal(NULL, NULL, 0, hints), -FI_ENODATA);
	assert_int_equal(refusal("127.0.0.1", "7000", 0, hints), -FI_ENODATA);
	hints->addr_format = FI_SOCKADDR_IN;
	hints->src_addrlen = 7;
	assert_int_equal(refusal(NULL, NULL, 0, hints), -FI_ENODATA);
	assert_int_equal(refusal("127.0.0.1", "7000", FI_SOURCE, hints), 0);
	hints->src_addrlen = sizeof(struct sockaddr_in);
	hints->dest_addr = make_address("127.0.0.1:7000", &hints->dest_addrlen);
	hints->dest_addrlen = 7;
	assert_int_equal(refusal("127.0.0.1", "7000", 0, hints), 0);
	((struct sockaddr *)hints->src_addr)->sa_family = AF_UNIX;
	assert_int_equal(refusal("127.0.0.1", "7000", 0, hints), -FI_ENODATA);
	((struct sockaddr *)hints->src_addr)->sa_family = AF_INET6; /* nor may they differ */
	assert_int_equal(refusal("127.0.0.1", "7000", 0, hints), -FI_ENODATA);
}

/* Local ---------------------------------------------------------------------------------------- */

static bool is_local(const char *text)
{
	struct sockaddr_storage to = {.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET};

	assert_int_equal(inet_pton(to.ss_family, text,
				   to.ss_family == AF_INET
					   ? (void *)&((struct sockaddr_in *)&to)->sin_addr
					   : (void *)&((struct sockaddr_in6 *)&to)->sin6_addr),
			 1);
	return prov_address_is_local(tested->libfabric, (struct sockaddr *)&to);
}

PLX_TEST(addresses_of_this_host_are_local)
{
	static const struct {
		const char *text;
		bool is_local;
	} rows[] = {
		{"127.0.0.1", true},        {"127.3.2.1", true},  {"0.0.0.0", true},
		{"::ffff:127.0.0.1", true}, {"192.0.2.1", false}, {"::ffff:192.0.2.1", false},
		{"2001:db8::1", false},     {"224.0.0.1", false}, /* multicast, broadcast */
		{"255.255.255.255", false}, {"ff0e::1", false},
	};
	struct sockaddr other = {.sa_family = AF_UNIX};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++)
		if (is_local(rows[i].text) != rows[i].is_local)
			fail_msg("%s", rows[i].text);
	assert_false(prov_address_is_local(tested->libfabric, &other));
	assert_int_equal(address_bytes(&other), 0);
}

TESTED_MAIN()
