/* SPDX-License-Identifier: BSD-3-Clause */
/* fi_getinfo's answers to hints, and its versions and flags. */
#include "questions.h"

#include <stdio.h>

/* One attribute, of hints or of an answer. */
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

static char *attribute(const struct fi_info *info, const struct hint *row)
{
	char *part = (char *)(uintptr_t)info;

	if (row->part)
		memcpy(&part, (const char *)info + row->part, sizeof(part));
	return part + row->offset;
}

static void set(struct fi_info *info, const struct hint *row)
{
	memcpy(attribute(info, row), &row->value, row->bytes);
}

static void expect_attributes(const struct fi_info *info, const struct hint *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = 0;

		memcpy(&value, attribute(info, &rows[i]), rows[i].bytes);
		if (value != rows[i].value)
			fail_msg("%s is 0x%llx, not 0x%llx", rows[i].what,
				 (unsigned long long)value, (unsigned long long)rows[i].value);
	}
}

/* Available attributes ----------------------------------------------------------------------- */

TEST(no_hints_give_one_message_endpoint)
{
	uint64_t comm = FI_LOCAL_COMM | (tested->same_host ? 0 : FI_REMOTE_COMM);
	const struct hint defaults[] = {
		IN_INFO(next, 0),
		IN_INFO(caps, tested->most->caps),
		IN_INFO(mode, 0),
		IN_INFO(dest_addr, 0),
		IN_INFO(handle, 0),
		IN_ATTR(ep, type, FI_EP_MSG),
		IN_ATTR(domain, threading, FI_THREAD_DOMAIN),
		IN_ATTR(domain, mr_mode, 0),
		IN_ATTR(domain, caps, comm),
		IN_ATTR(fabric, prov_name, 0),
		IN_ATTR(fabric, api_version, VERSION),
		IN_ATTR(tx, op_flags, 0),
		IN_ATTR(tx, size, PROV_EP_SIZE),
		IN_ATTR(rx, comp_order, COMPAT_ORDER_STRICT),
		IN_ATTR(rx, size, PROV_EP_SIZE),
	};
	struct fi_info *info = ask(NULL);

	expect_attributes(info, defaults, PLX_ARRAY_LEN(defaults));
	assert_true(info->ep_attr->protocol & COMPAT_PROV_SPECIFIC);
	assert_true(info->tx_attr->msg_order & FI_ORDER_SAS);
	assert_string_equal(info->domain_attr->name, tested->libfabric->name);
	assert_string_equal(info->fabric_attr->name, tested->libfabric->name);
}

TEST(capabilities_are_those_requested)
{
	uint64_t comm = tested->most->domain_attr->caps;

	hints->caps = FI_MSG;
	assert_int_equal(ask(hints)->caps, FI_MSG | FI_SEND | FI_RECV | comm);
	hints->caps = FI_MSG | FI_SEND;
	assert_int_equal(ask(hints)->caps, FI_MSG | FI_SEND | comm);
	assert_int_equal(answer->tx_attr->caps, FI_MSG | FI_SEND);
	assert_int_equal(answer->rx_attr->caps, FI_MSG);
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
		assert_int_equal(ask(hints)->domain_attr->mr_mode, modes[i][1]);
	}
}

TEST(hints_may_lack_all_attributes_or_have_those_of_an_answer)
{
	struct fi_info bare = {.caps = FI_MSG, .mode = ~UINT64_C(0)}, *first;
	struct fid pep = {.fclass = FI_CLASS_PEP};

	assert_int_equal(ask(&bare)->mode, 0);
	first = fi_dupinfo(ask(NULL));
	assert_int_equal(ask(first)->caps, first->caps);
	assert_int_equal(answer->tx_attr->size, first->tx_attr->size);
	first->handle = &pep; /* only those of passive endpoints are passed on */
	assert_ptr_equal(ask(first)->handle, &pep);
	fi_freeinfo(first);
}

/* Hints that fit and hints that do not -------------------------------------------------------- */

static int answer_to(const struct hint *hint)
{
	struct fi_info *wanted = fi_allocinfo();
	int rc;

	set(wanted, hint);
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
		IN_INFO(mode, FI_CONTEXT | FI_RX_CQ_DATA),
		IN_ATTR(ep, max_msg_size, tested->most->ep_attr->max_msg_size),
		IN_ATTR(ep, tx_ctx_cnt, 1),
		IN_ATTR(tx, caps, FI_MSG | FI_MULTI_RECV),
		IN_ATTR(tx, op_flags, FI_COMPLETION | FI_INJECT),
		IN_ATTR(tx, op_flags, FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE),
		IN_ATTR(tx, msg_order, FI_ORDER_SAS),
		IN_ATTR(tx, inject_size, tested->most->tx_attr->inject_size),
		IN_ATTR(tx, size, tested->most->tx_attr->size),
		IN_ATTR(tx, iov_limit, PROV_IOV_MAX),
		IN_ATTR(tx, tclass, FI_TC_LOW_LATENCY),
		IN_ATTR(rx, total_buffered_recv, 1 << 20),
		IN_ATTR(domain, resource_mgmt, FI_RM_DISABLED),
		IN_ATTR(domain, av_type, FI_AV_MAP),
		IN_ATTR(domain, cq_data_size, 8),
		IN_ATTR(domain, ep_cnt, 100000),
	};

	expect(good, PLX_ARRAY_LEN(good), 0);
}

TEST(unsupported_hints_are_refused)
{
	const struct hint bad[] = {
		IN_INFO(caps, FI_TAGGED),
		IN_INFO(caps, FI_MSG | FI_MULTI_RECV),
		IN_INFO(caps, FI_MSG | FI_SOURCE),
		IN_INFO(addr_format, FI_ADDR_STR),
		IN_ATTR(ep, type, FI_EP_RDM),
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

TESTED_MAIN()
