/* SPDX-License-Identifier: BSD-3-Clause */
/* fi_getinfo's answers to hints. */
#include "ask.h"

#include <ctype.h>
#include <stdio.h>

static uint64_t comm(void)
{
	return FI_LOCAL_COMM | (tested->same_host ? 0 : FI_REMOTE_COMM);
}

#define TEST(name) PLX_TEST_WITH(name, set_up, tear_down)

/* Available attributes ----------------------------------------------------------------------- */

TEST(without_hints_there_is_one_endpoint_of_messages)
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
	assert_string_equal(info->fabric_attr->prov_name, tested->libfabric->name);
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

TEST(asked_sizes_and_flags_are_given)
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

TEST(capabilities_are_those_asked_for)
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
TEST(registration_mode_is_what_is_needed_or_one_of_old)
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

TEST(hints_may_be_bare)
{
	struct fi_info bare = {.caps = FI_MSG, .mode = ~UINT64_C(0)};
	struct fi_info *info = ask(&bare);

	assert_int_equal(info->mode, 0);
}

TEST(an_answer_is_good_as_hints)
{
	struct fi_info *first = fi_dupinfo(ask(NULL)), *info = ask(first);

	assert_int_equal(info->caps, first->caps);
	assert_int_equal(info->tx_attr->size, first->tx_attr->size);
	fi_freeinfo(first);
}

TEST(passive_endpoint_is_handed_on_and_other_handles_are_not)
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

TEST(what_there_is_is_granted)
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

TEST(what_there_is_not_is_refused)
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

TEST(one_sided_access_and_other_hosts_are_granted_by_those_who_have_them)
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
TEST(delivery_is_told_by_those_who_see_it)
{
	const struct hint delivery = IN_ATTR(tx, op_flags, FI_DELIVERY_COMPLETE);

	expect(&delivery, 1, tested->same_host ? 0 : -FI_ENODATA);
}

TEST(direction_of_a_context_is_one_of_the_endpoint)
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

TEST(names_choose)
{
	assert_int_equal(answer_to_name(&hints->fabric_attr->name, tested->libfabric->name), 0);
	assert_int_equal(answer_to_name(&hints->fabric_attr->name, "net"), -FI_ENODATA);
	assert_int_equal(answer_to_name(&hints->domain_attr->name, tested->libfabric->name), 0);
	assert_int_equal(answer_to_name(&hints->domain_attr->name, "lo"), -FI_ENODATA);
}

TEST(provider_is_named_alone_or_with_others_left_out)
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

TESTED_MAIN()
