/* SPDX-License-Identifier: BSD-3-Clause */
/* fi_getinfo's answers to hints; its versions, flags and addresses; and the contents of a
 * connection request. Each test has empty hints. */
#include "tested.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

#define LAYERED (UINT64_C(1) << 59)
#define VERSION FI_VERSION(1, 14)

static struct fi_info *hints;
static struct fi_info *answer; /* the newest one */

static int set_up(void **state)
{
	hints = fi_allocinfo();
	return hints ? 0 : -1;
}

static int tear_down(void **state)
{
	fi_freeinfo(hints);
	fi_freeinfo(answer);
	answer = NULL;
	return 0;
}

/* Return: the answer, which is freed after the next question. */
static struct fi_info *ask_for(const char *node, const char *service, uint64_t flags,
			       const struct fi_info *wanted)
{
	struct fi_info *info = NULL;

	assert_int_equal(prov_getinfo(tested, VERSION, node, service, flags, wanted, &info), 0);
	assert_non_null(info);
	fi_freeinfo(answer);
	answer = info;
	return info;
}

static struct fi_info *ask(const struct fi_info *wanted)
{
	return ask_for(NULL, NULL, 0, wanted);
}

/* The returned error; a refusal must not set an answer. */
static int refusal(const char *node, const char *service, uint64_t flags,
		   const struct fi_info *wanted)
{
	struct fi_info *info = (void *)wanted;
	int rc = prov_getinfo(tested, VERSION, node, service, flags, wanted, &info);

	if (rc)
		assert_ptr_equal(info, wanted);
	else
		fi_freeinfo(info);
	return rc;
}

#define TEST(name) PLX_TEST_WITH(name, set_up, tear_down)

static uint64_t comm(void)
{
	return FI_LOCAL_COMM | (tested->same_host ? 0 : FI_REMOTE_COMM);
}

/* Available attributes ----------------------------------------------------------------------- */

TEST(no_hints_give_one_message_endpoint)
{
	struct fi_info *info = ask(NULL);

	assert_null(info->next);
	assert_int_equal(info->caps, tested->most->caps);
	assert_int_equal(info->mode, 0);
	assert_null(info->dest_addr);
	assert_null(info->handle);
	assert_int_equal(info->ep_attr->type, FI_EP_MSG);
	assert_true(info->ep_attr->protocol & COMPAT_PROV_SPECIFIC);
	assert_int_equal(info->ep_attr->max_msg_size, tested->most->ep_attr->max_msg_size);
	assert_int_equal(info->domain_attr->threading, FI_THREAD_DOMAIN);
	assert_int_equal(info->domain_attr->control_progress, FI_PROGRESS_MANUAL);
	assert_int_equal(info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	assert_int_equal(info->domain_attr->resource_mgmt, FI_RM_ENABLED);
	assert_int_equal(info->domain_attr->mr_mode, 0);
	assert_int_equal(info->domain_attr->cq_data_size, 8);
	assert_int_equal(info->domain_attr->caps, comm());
	assert_string_equal(info->domain_attr->name, tested->libfabric->name);
	assert_string_equal(info->fabric_attr->name, tested->libfabric->name);
	assert_null(info->fabric_attr->prov_name);
	assert_int_equal(info->fabric_attr->prov_version, tested->libfabric->version);
	assert_int_equal(info->fabric_attr->api_version, VERSION);
}

TEST(contexts_have_their_defaults)
{
	struct fi_info *info = ask(NULL);

	assert_int_equal(info->tx_attr->caps, tested->most->tx_attr->caps);
	assert_int_equal(info->tx_attr->op_flags, 0);
	assert_true(info->tx_attr->msg_order & FI_ORDER_SAS);
	assert_int_equal(info->tx_attr->comp_order, COMPAT_ORDER_NONE);
	assert_int_equal(info->tx_attr->inject_size, tested->most->tx_attr->inject_size);
	assert_int_equal(info->tx_attr->size, PROV_EP_SIZE);
	assert_int_equal(info->tx_attr->iov_limit, PROV_IOV_MAX);
	assert_int_equal(info->tx_attr->rma_iov_limit, tested_has_rma());
	assert_int_equal(info->rx_attr->caps, tested->most->rx_attr->caps);
	assert_int_equal(info->rx_attr->op_flags, 0);
	assert_int_equal(info->rx_attr->msg_order, info->tx_attr->msg_order);
	assert_int_equal(info->rx_attr->comp_order, COMPAT_ORDER_STRICT);
	assert_int_equal(info->rx_attr->size, PROV_EP_SIZE);
	assert_int_equal(info->rx_attr->iov_limit, PROV_IOV_MAX);
}

TEST(requested_sizes_and_flags_are_granted)
{
	struct fi_info *info;

	hints->tx_attr->size = 17;
	hints->rx_attr->size = tested->most->rx_attr->size;
	hints->tx_attr->inject_size = 1;
	hints->tx_attr->op_flags = FI_INJECT_COMPLETE;
	hints->rx_attr->op_flags = FI_COMPLETION;
	hints->domain_attr->av_type = FI_AV_TABLE;
	info = ask(hints);
	assert_int_equal(info->tx_attr->size, 17);
	assert_int_equal(info->rx_attr->size, tested->most->rx_attr->size);
	assert_int_equal(info->tx_attr->inject_size, tested->most->tx_attr->inject_size);
	assert_int_equal(info->tx_attr->op_flags, FI_INJECT_COMPLETE);
	assert_int_equal(info->rx_attr->op_flags, FI_COMPLETION);
	assert_int_equal(info->domain_attr->av_type, FI_AV_TABLE);
}

TEST(capabilities_are_those_requested)
{
	struct fi_info *info;

	hints->caps = FI_MSG;
	info = ask(hints);
	assert_int_equal(info->caps, FI_MSG | FI_SEND | FI_RECV | comm());

	hints->caps = FI_MSG | FI_SEND;
	info = ask(hints);
	assert_int_equal(info->caps, FI_MSG | FI_SEND | comm());
	assert_int_equal(info->tx_attr->caps, FI_MSG | FI_SEND);
	assert_int_equal(info->rx_attr->caps, FI_MSG);
}

/* Only the bits about how peers access memory. */
TEST(the_registration_mode_is_minimal_or_a_legacy_mode)
{
	const int modes[][2] = {
		{FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
		 tested_has_rma() ? FI_MR_VIRT_ADDR | FI_MR_PROV_KEY : 0},
		{COMPAT_MR_BASIC, COMPAT_MR_BASIC},
		{COMPAT_MR_SCALABLE, COMPAT_MR_SCALABLE},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(modes); i++) {
		hints->domain_attr->mr_mode = modes[i][0];

		struct fi_info *info = ask(hints);

		assert_int_equal(info->domain_attr->mr_mode, modes[i][1]);
	}
}

TEST(hints_may_lack_all_attributes)
{
	struct fi_info bare = {.caps = FI_MSG, .mode = ~UINT64_C(0)};
	struct fi_info *info = ask(&bare);

	assert_int_equal(info->mode, 0);
}

TEST(an_answer_is_a_valid_hint)
{
	struct fi_info *first = fi_dupinfo(ask(NULL)), *info = ask(first);

	assert_int_equal(info->caps, first->caps);
	assert_int_equal(info->tx_attr->size, first->tx_attr->size);
	fi_freeinfo(first);
}

TEST(only_handles_of_passive_endpoints_are_passed_on)
{
	struct fid pep = {.fclass = FI_CLASS_PEP}, request = {.fclass = FI_CLASS_CONNREQ};
	struct fi_info *info;

	hints->handle = &pep;
	info = ask(hints);
	assert_ptr_equal(info->handle, &pep);
	hints->handle = &request;
	info = ask(hints);
	assert_null(info->handle);
}

/* Hints that fit and hints that do not -------------------------------------------------------- */

struct hint {
	const char *what;
	size_t part;   /* offset of the attributes in struct fi_info; 0: the structure itself */
	size_t offset; /* of the member */
	size_t bytes;
	uint64_t value;
};

#define IN_INFO(member, v) \
	{#member, 0, offsetof(struct fi_info, member), sizeof(((struct fi_info *)0)->member), (v)}
#define IN_ATTR(attr, member, v)                                   \
	{#attr " " #member, offsetof(struct fi_info, attr##_attr), \
	 offsetof(struct fi_##attr##_attr, member),                \
	 sizeof(((struct fi_##attr##_attr *)0)->member), (v)}

static int answer_to(const struct hint *hint)
{
	struct fi_info *wanted = fi_allocinfo();
	char *part = (char *)wanted;
	int rc;

	if (hint->part)
		memcpy(&part, (char *)wanted + hint->part, sizeof(part));
	memcpy(part + hint->offset, &hint->value, hint->bytes);
	rc = refusal(NULL, NULL, 0, wanted);
	fi_freeinfo(wanted);
	return rc;
}

static void expect(const struct hint *rows, size_t count, int rc)
{
	for (size_t i = 0; i < count; i++)
		if (answer_to(&rows[i]) != rc)
			fail_msg("%s 0x%llx is %s", rows[i].what, (unsigned long long)rows[i].value,
				 rc ? "not refused" : "refused");
}

TEST(supported_hints_are_granted)
{
	const struct hint good[] = {
		IN_INFO(caps, FI_MSG | FI_RECV),
		IN_INFO(caps, FI_LOCAL_COMM),
		IN_INFO(mode, FI_CONTEXT | FI_RX_CQ_DATA),
		IN_INFO(addr_format, FI_SOCKADDR),
		IN_INFO(addr_format, FI_SOCKADDR_IN),
		IN_ATTR(ep, type, FI_EP_MSG),
		IN_ATTR(ep, max_msg_size, tested->most->ep_attr->max_msg_size),
		IN_ATTR(ep, tx_ctx_cnt, 1),
		IN_ATTR(ep, rx_ctx_cnt, 1),
		IN_ATTR(tx, caps, FI_MSG | FI_SEND),
		IN_ATTR(tx, caps, FI_MSG | FI_MULTI_RECV),
		IN_ATTR(tx, op_flags, FI_COMPLETION | FI_INJECT),
		IN_ATTR(tx, op_flags, FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE),
		IN_ATTR(tx, msg_order, FI_ORDER_SAS),
		IN_ATTR(tx, inject_size, tested->most->tx_attr->inject_size),
		IN_ATTR(tx, size, tested->most->tx_attr->size),
		IN_ATTR(tx, iov_limit, PROV_IOV_MAX),
		IN_ATTR(tx, tclass, FI_TC_LOW_LATENCY),
		IN_ATTR(rx, caps, FI_MSG | FI_RECV),
		IN_ATTR(rx, msg_order, FI_ORDER_SAS),
		IN_ATTR(rx, comp_order, COMPAT_ORDER_STRICT),
		IN_ATTR(rx, total_buffered_recv, 1 << 20),
		IN_ATTR(rx, iov_limit, PROV_IOV_MAX),
		IN_ATTR(domain, threading, FI_THREAD_DOMAIN),
		IN_ATTR(domain, control_progress, FI_PROGRESS_MANUAL),
		IN_ATTR(domain, data_progress, FI_PROGRESS_MANUAL),
		IN_ATTR(domain, resource_mgmt, FI_RM_DISABLED),
		IN_ATTR(domain, av_type, FI_AV_MAP),
		IN_ATTR(domain, cq_data_size, 8),
		IN_ATTR(domain, ep_cnt, 100000),
		IN_ATTR(domain, caps, FI_LOCAL_COMM),
		IN_ATTR(domain, max_err_data, PROV_CM_DATA_MAX),
		IN_ATTR(fabric, prov_version, tested->libfabric->version),
	};

	expect(good, PLX_ARRAY_LEN(good), 0);
}

TEST(unsupported_hints_are_refused)
{
	const struct hint bad[] = {
		IN_INFO(caps, FI_TAGGED),
		IN_INFO(caps, FI_MSG | FI_MULTI_RECV),
		IN_INFO(caps, FI_MSG | FI_SOURCE),
		IN_INFO(addr_format, FI_SOCKADDR_IB),
		IN_INFO(addr_format, FI_ADDR_STR),
		IN_ATTR(ep, type, FI_EP_RDM),
		IN_ATTR(ep, type, FI_EP_DGRAM),
		IN_ATTR(ep, protocol, FI_PROTO_SOCK_TCP),
		IN_ATTR(ep, protocol_version, 1000),
		IN_ATTR(ep, max_msg_size, tested->most->ep_attr->max_msg_size + 1),
		IN_ATTR(ep, tx_ctx_cnt, 2),
		IN_ATTR(ep, rx_ctx_cnt, FI_SHARED_CONTEXT),
		IN_ATTR(ep, auth_key_size, 16),
		IN_ATTR(tx, op_flags, FI_COMMIT_COMPLETE),
		IN_ATTR(tx, msg_order, FI_ORDER_SAS | FI_ORDER_RAW),
		IN_ATTR(tx, comp_order, COMPAT_ORDER_STRICT),
		IN_ATTR(tx, inject_size, tested->most->tx_attr->inject_size + 1),
		IN_ATTR(tx, size, tested->most->tx_attr->size + 1),
		IN_ATTR(tx, iov_limit, PROV_IOV_MAX + 1),
		IN_ATTR(tx, rma_iov_limit, 2),
		IN_ATTR(rx, caps, FI_MSG | FI_MULTI_RECV),
		IN_ATTR(rx, op_flags, FI_MULTI_RECV),
		IN_ATTR(rx, msg_order, FI_ORDER_RAR),
		IN_ATTR(rx, comp_order, UINT64_C(1) << 16), /* FI_ORDER_DATA of libfabric 1 */
		IN_ATTR(rx, size, tested->most->rx_attr->size + 1),
		IN_ATTR(rx, iov_limit, PROV_IOV_MAX + 1),
		IN_ATTR(domain, threading, FI_THREAD_SAFE),
		IN_ATTR(domain, threading, FI_THREAD_FID),
		IN_ATTR(domain, threading, FI_THREAD_ENDPOINT),
		IN_ATTR(domain, threading, FI_THREAD_COMPLETION),
		IN_ATTR(domain, control_progress, FI_PROGRESS_AUTO),
		IN_ATTR(domain, data_progress, FI_PROGRESS_AUTO),
		IN_ATTR(domain, mr_mode, COMPAT_MR_BASIC | FI_MR_LOCAL),
		IN_ATTR(domain, mr_mode, COMPAT_MR_BASIC | COMPAT_MR_SCALABLE),
		IN_ATTR(domain, mr_key_size, 16),
		IN_ATTR(domain, cq_data_size, 9),
		IN_ATTR(domain, max_ep_tx_ctx, 2),
		IN_ATTR(domain, max_ep_srx_ctx, 1),
		IN_ATTR(domain, cntr_cnt, 1),
		IN_ATTR(domain, mr_iov_limit, tested->most->domain_attr->mr_iov_limit + 1),
		IN_ATTR(domain, caps, FI_SHARED_AV),
		IN_ATTR(domain, max_err_data, PROV_CM_DATA_MAX + 1),
		IN_ATTR(fabric, prov_version, tested->libfabric->version + 1),
	};

	expect(bad, PLX_ARRAY_LEN(bad), -FI_ENODATA);
}

TEST(rma_and_remote_hosts_are_granted_only_by_providers_that_have_them)
{
	const struct hint remote[] = {
		IN_INFO(caps, FI_MSG | FI_REMOTE_COMM),
		IN_INFO(caps, FI_RMA | FI_READ | FI_REMOTE_WRITE),
		IN_ATTR(tx, caps, FI_MSG | FI_RMA),
		IN_ATTR(tx, msg_order, FI_ORDER_SAW | FI_ORDER_WAS | FI_ORDER_WAW),
		IN_ATTR(tx, rma_iov_limit, 1),
		IN_ATTR(domain, caps, FI_REMOTE_COMM),
	};

	expect(remote, PLX_ARRAY_LEN(remote), tested_has_rma() ? 0 : -FI_ENODATA);
}

/* A socket reports what the kernel has taken, not what the peer has. */
TEST(delivery_complete_is_granted_only_within_a_host)
{
	const struct hint delivery = IN_ATTR(tx, op_flags, FI_DELIVERY_COMPLETE);

	expect(&delivery, 1, tested->same_host ? 0 : -FI_ENODATA);
}

TEST(the_directions_of_a_context_are_among_those_of_the_endpoint)
{
	hints->caps = FI_MSG | FI_RECV;
	hints->tx_attr->caps = FI_MSG | FI_SEND;
	assert_int_equal(refusal(NULL, NULL, 0, hints), -FI_ENODATA);
	hints->tx_attr->caps = FI_MSG;
	assert_int_equal(refusal(NULL, NULL, 0, hints), 0);
}

static int answer_to_name(char **name, const char *text)
{
	int rc;

	*name = strdup(text);
	rc = refusal(NULL, NULL, 0, hints);
	free(*name);
	*name = NULL;
	return rc;
}

TEST(hints_select_the_fabric_and_the_domain_by_name)
{
	assert_int_equal(answer_to_name(&hints->fabric_attr->name, tested->libfabric->name), 0);
	assert_int_equal(answer_to_name(&hints->fabric_attr->name, "net"), -FI_ENODATA);
	assert_int_equal(answer_to_name(&hints->domain_attr->name, tested->libfabric->name), 0);
	assert_int_equal(answer_to_name(&hints->domain_attr->name, "lo"), -FI_ENODATA);
}

TEST(a_provider_is_selected_by_name_or_by_excluding_others)
{
	/* %s stands for the name of the tested provider. */
	static const struct {
		const char *names;
		int rc;
	} cases[] = {
		{"%s", 0},
		{"%s;^ofi_rxm", 0},
		{"^ofi_rxm", 0},
		{"tcp", -FI_ENODATA},
		{"shm", -FI_ENODATA},
		{"%s2", -FI_ENODATA},
		{"plx", -FI_ENODATA},
		{"", 0},
		{"^%s", -FI_ENODATA},
		{"%s;ofi_rxm", -FI_ENODATA},
	};
	char names[64];

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		snprintf(names, sizeof(names), cases[i].names, tested->libfabric->name);
		if (answer_to_name(&hints->fabric_attr->prov_name, names) != cases[i].rc)
			fail_msg("provider %s is answered otherwise", names);
	}
	for (size_t i = 0; tested->libfabric->name[i]; i++)
		names[i] = (char)toupper((unsigned char)tested->libfabric->name[i]);
	names[strlen(tested->libfabric->name)] = '\0';
	assert_int_equal(answer_to_name(&hints->fabric_attr->prov_name, names), 0);
}

TEST(objects_of_other_providers_are_refused)
{
	struct fid_fabric fabric = {.ops = NULL};
	struct fid_domain domain = {.ops = NULL};

	hints->fabric_attr->fabric = &fabric;
	assert_int_equal(refusal(NULL, NULL, 0, hints), -FI_ENODATA);
	hints->fabric_attr->fabric = NULL;
	hints->domain_attr->domain = &domain;
	assert_int_equal(refusal(NULL, NULL, 0, hints), -FI_ENODATA);
}

/* Versions and flags ------------------------------------------------------------------------- */

TEST(api_versions_are_checked)
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

TEST(layered_providers_are_refused)
{
	assert_int_equal(refusal(NULL, NULL, LAYERED, NULL), -FI_ENODATA);
}

TEST(fi_prov_attr_only_returns_only_the_version)
{
	struct fi_info *info;

	hints->caps = FI_RMA;
	info = ask_for(NULL, NULL, FI_PROV_ATTR_ONLY, hints);
	assert_null(info->next);
	assert_null(info->fabric_attr->prov_name);
	assert_int_equal(info->fabric_attr->prov_version, tested->libfabric->version);
	assert_int_equal(info->caps, 0);
	assert_null(info->domain_attr->name);
}

TEST(the_provider_name_is_left_to_libfabric)
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

TEST(the_default_source_is_the_wildcard)
{
	struct fi_info *info = ask(NULL);

	expect_addresses(info, "0.0.0.0", 0, NULL, 0);
	assert_int_equal(info->addr_format, FI_SOCKADDR_IN);

	hints->addr_format = FI_SOCKADDR;
	info = ask(hints);
	assert_int_equal(info->addr_format, FI_SOCKADDR);
}

TEST(a_listener_has_node_and_service_as_its_source)
{
	struct fi_info *info = ask_for("127.0.0.1", "7000", FI_SOURCE, NULL);

	assert_null(info->next);
	expect_addresses(info, "127.0.0.1", 7000, NULL, 0);
	info = ask_for("127.0.0.1", NULL, FI_SOURCE, NULL);
	expect_addresses(info, "127.0.0.1", 0, NULL, 0);
}

TEST(a_listener_without_a_node_uses_the_wildcard)
{
	struct fi_info *info;

	hints->addr_format = FI_SOCKADDR_IN;
	info = ask_for(NULL, "7000", FI_SOURCE, hints);
	assert_null(info->next);
	expect_addresses(info, "0.0.0.0", 7000, NULL, 0);
}

TEST(each_local_address_is_returned_in_the_resolvers_order)
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

TEST(a_local_connector_uses_the_destination_as_its_source)
{
	struct fi_info *info = ask_for("127.0.0.1", "7000", 0, NULL);

	assert_null(info->next);
	expect_addresses(info, "127.0.0.1", 0, "127.0.0.1", 7000);
	assert_int_equal(info->addr_format, FI_SOCKADDR_IN);
}

TEST(an_ipv6_request_returns_ipv6_addresses)
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
TEST(a_provider_within_a_host_refuses_remote_addresses)
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

TEST(names_are_resolved_unless_fi_numerichost_is_set)
{
	assert_int_equal(refusal("localhost", "7000", 0, NULL), 0);
	assert_int_equal(refusal("localhost", "7000", FI_NUMERICHOST, NULL), -FI_ENODATA);
	assert_int_equal(refusal("127.0.0.1", "7000", FI_NUMERICHOST, NULL), 0);
}

TEST(fi_source_requires_a_node_or_a_service)
{
	assert_int_equal(refusal(NULL, NULL, FI_SOURCE, NULL), -FI_EINVAL);
}

TEST(addresses_of_hints_are_used)
{
	struct fi_info *info;

	hints->src_addr = make_address("127.0.0.2", 1234, &hints->src_addrlen);
	hints->dest_addr = make_address("127.0.0.1", 7000, &hints->dest_addrlen);
	info = ask(hints);
	expect_addresses(info, "127.0.0.2", 1234, "127.0.0.1", 7000);
}

TEST(node_and_service_override_the_addresses_of_hints)
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

TEST(unused_addresses_of_hints_are_ignored)
{
	hints->src_addr = make_address("127.0.0.1", 0, &hints->src_addrlen);
	hints->src_addrlen = 7;
	assert_int_equal(refusal("127.0.0.1", "7000", FI_SOURCE, hints), 0);
	hints->src_addrlen = sizeof(struct sockaddr_in);
	hints->dest_addr = make_address("127.0.0.1", 7000, &hints->dest_addrlen);
	hints->dest_addrlen = 7;
	assert_int_equal(refusal("127.0.0.1", "7000", 0, hints), 0);
}

TEST(source_and_destination_must_have_one_family)
{
	struct sockaddr_in6 *six = calloc(1, sizeof(*six));

	six->sin6_family = AF_INET6;
	hints->src_addr = six;
	hints->src_addrlen = sizeof(*six);
	assert_int_equal(refusal("127.0.0.1", "7000", 0, hints), -FI_ENODATA);
}

/* Requests ----------------------------------------------------------------------------------- */

TEST(a_request_carries_both_addresses_and_its_handle)
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
	assert_null(info->fabric_attr->prov_name);
	fi_freeinfo(info);

	memset(&local, 0, sizeof(local));
	local.ss_family = AF_INET6;
	info = prov_info_of_request(of_pep, &local, (struct sockaddr *)&peer, &request);
	expect_addresses(info, "::", 0, "127.0.0.2", 4321);
	assert_int_equal(info->addr_format, FI_SOCKADDR);
	fi_freeinfo(info);
}

TESTED_MAIN()
