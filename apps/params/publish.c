/* SPDX-License-Identifier: BSD-3-Clause */
#include "publish.h"

#include "app.h"
#include "netio.h"
#include "wire.h"

#define TIMEOUT_NS (100 * PLX_NS_PER_US) /* a partly filled page is sent then */

static struct netio_context context;
static struct netio_publish_socket publisher;
static bool is_started;

int publish_start(const char *address, unsigned port)
{
	const struct netio_publish_attr attr = {
		.policy = NETIO_POLICY_CONFLATE,
		.timeout_ns = TIMEOUT_NS,
	};
	char host[PLX_ADDRESS_MAX];
	unsigned of_address;
	int rc = netio_init(&context);

	if (rc)
		return rc;
	is_started = true;
	rc = plx_address_split("--listen", address, host, &of_address);
	rc = rc ? rc : netio_publish_socket_init(&context.evloop, &publisher, &attr);
	return rc ? rc : netio_publish_listen(&publisher, host, port);
}

void publish_change(const struct param *param, bool removed)
{
	uint8_t record[WIRE_RECORD_MAX];

	/* Delivery is between the subscribers and the socket; subscribers get gap reports. */
	netio_buffered_publish(&publisher, param->id, record, record_write(param, removed, record),
			       0, NULL);
}

unsigned publish_port(void)
{
	return netio_publish_socket_port(&publisher);
}

void publish_stop(void)
{
	if (!is_started)
		return;
	netio_publish_socket_fini(&publisher);
	netio_fini(&context);
}
