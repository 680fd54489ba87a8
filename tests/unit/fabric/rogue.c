/* SPDX-License-Identifier: BSD-3-Clause */
#include "rogue.h"

#include "fixture.h"
#include "prov_ep.h"

#include <arpa/inet.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <sys/queue.h>

struct rogue {
	LIST_ENTRY(rogue) open;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_ep *ep;
	struct fid_mr *mr;  /* of received; NULL: not needed */
	const void *newest; /* context of the newest completion; NULL: of a receive */
	uint32_t event;     /* FI_CONNECTED; else it was rejected */
	uint32_t answer_length;
	uint8_t answer[HELLO_BYTES_MAX];
	uint8_t received[8][4096];
};

static LIST_HEAD(, rogue) open_rogues = LIST_HEAD_INITIALIZER(open_rogues);

static bool is_mr_needed(const struct rogue *rogue)
{
	return rogue->info->domain_attr->mr_mode & FI_MR_LOCAL;
}

static struct fid_mr *register_bytes(struct rogue *rogue, void *bytes, size_t size, uint64_t key)
{
	struct fid_mr *mr = NULL;

	if (is_mr_needed(rogue))
		assert_int_equal(fi_mr_reg(rogue->domain, bytes, size, FI_SEND | FI_RECV, 0, key, 0,
					   &mr, NULL),
				 0);
	return mr;
}

static void *desc_of(struct fid_mr *mr)
{
	return mr ? fi_mr_desc(mr) : NULL;
}

static bool is_libfabrics(void)
{
	return strcmp(fixture_provider, "foreign") == 0;
}

/* Pollux's provider is not in libfabric's list. */
static bool is_own(void)
{
	return !is_provider_given() && !is_libfabrics();
}

static const struct plx_fabric_driver *own_driver(void)
{
	return strcmp(fixture_provider, "shm") == 0 ? &plx_driver_shm : &plx_driver_tcp;
}

static const char *fi_name(void)
{
	if (is_own())
		return own_driver()->provider;
	return is_libfabrics() ? "tcp" : provider_to_test();
}

static struct fi_info *resolve(const char *address)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	char host[64];

	strcpy(host, address);
	*strrchr(host, ':') = '\0';
	hints->caps = FI_MSG | (is_own() && !own_driver()->direct ? 0 : FI_RMA);
	hints->mode = FI_RX_CQ_DATA;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup(fi_name());
	assert_int_equal((is_own() ? own_driver()->getinfo : fi_getinfo)(FI_VERSION(1, 17), host,
									 strrchr(address, ':') + 1,
									 0, hints, &info),
			 0);
	fi_freeinfo(hints);
	return info;
}

static void open_all(struct rogue *rogue)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_NONE};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_NONE};

	assert_int_equal((is_own() ? own_driver()->fabric : fi_fabric)(rogue->info->fabric_attr,
								       &rogue->fabric, NULL),
			 0);
	assert_int_equal(fi_domain(rogue->fabric, rogue->info, &rogue->domain, NULL), 0);
	assert_int_equal(fi_cq_open(rogue->domain, &cq_attr, &rogue->cq, NULL), 0);
	assert_int_equal(fi_eq_open(rogue->fabric, &eq_attr, &rogue->eq, NULL), 0);
	assert_int_equal(fi_endpoint(rogue->domain, rogue->info, &rogue->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(rogue->ep, &rogue->eq->fid, 0), 0);
	assert_int_equal(fi_ep_bind(rogue->ep, &rogue->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(rogue->ep), 0);
	rogue->mr = register_bytes(rogue, rogue->received, sizeof(rogue->received), 1);
	for (int i = 0; i < 8; i++)
		assert_int_equal(
			fi_recv(rogue->ep, rogue->received[i], 4096, desc_of(rogue->mr), 0, NULL),
			0);
}

static void keep_answer(struct rogue *rogue, const void *answer, size_t length)
{
	assert_true(length <= sizeof(rogue->answer));
	rogue->answer_length = (uint32_t)length;
	if (length)
		memcpy(rogue->answer, answer, length);
}

/* Return: whether the answer was there. */
static bool take_answer(struct rogue *rogue)
{
	union {
		struct fi_eq_cm_entry cm;
		uint8_t room[sizeof(struct fi_eq_cm_entry) + HELLO_BYTES_MAX];
	} entry;
	struct fi_eq_err_entry error = {0};
	ssize_t rc = fi_eq_read(rogue->eq, &rogue->event, &entry, sizeof(entry), 0);

	if (rc >= (ssize_t)sizeof(entry.cm)) {
		keep_answer(rogue, entry.cm.data, (size_t)rc - sizeof(entry.cm));
	} else if (rc == -FI_EAVAIL) {
		assert_true(fi_eq_readerr(rogue->eq, &error, 0) > 0);
		keep_answer(rogue, error.err_data, error.err_data_size);
	}
	return rc != -FI_EAGAIN;
}

static struct rogue *ask(const char *address, const void *data, size_t length)
{
	struct rogue *rogue = calloc(1, sizeof(*rogue));
	uint64_t end_ns = plx_now_ns() + 5 * PLX_NS_PER_S; /* a listener may keep it waiting */

	LIST_INSERT_HEAD(&open_rogues, rogue, open);
	rogue->info = resolve(address);
	open_all(rogue);
	assert_int_equal(fi_connect(rogue->ep, rogue->info->dest_addr, data, length), 0);
	while (!take_answer(rogue) && plx_now_ns() < end_ns)
		plx_loop_turn();
	return rogue;
}

struct rogue *rogue_connect_with(const char *address, const void *data, size_t length)
{
	struct rogue *rogue = ask(address, data, length);

	assert_int_equal(rogue->event, FI_CONNECTED);
	return rogue;
}

void rogue_expect_rejection(const char *address, const void *data, size_t length,
			    struct frame_hello *answer_out)
{
	struct rogue *rogue = ask(address, data, length);

	assert_int_equal(rogue->event, 0);
	*answer_out = rogue_answer(rogue);
	rogue_close(rogue);
}

struct frame_hello rogue_answer(const struct rogue *rogue)
{
	struct frame_hello hello = {0};

	assert_null(hello_read(rogue->answer, rogue->answer_length, false, &hello));
	return hello;
}

unsigned rogue_frames(struct rogue *rogue)
{
	unsigned count = 0;

	rogue_progress(rogue);
	while (count < PLX_ARRAY_LEN(rogue->received) && rogue->received[count][0])
		count++;
	return count;
}

struct frame_hello rogue_whole_answer(const struct rogue *rogue)
{
	const uint8_t *frame = rogue->received[0];
	struct frame_hello hello = rogue_answer(rogue);

	assert_int_equal(frame[0], FRAME_HELLO);
	assert_null(hello_read(frame + FRAME_HEADER_BYTES, get32(frame + 4), true, &hello));
	return hello;
}

static struct rogue *connect_saying(const char *address, const struct frame_hello *hello)
{
	uint8_t opening[HELLO_BYTES_MAX];

	return rogue_connect_with(address, opening, hello_write(opening, hello, 0, HELLO_REFUSED));
}

struct rogue *rogue_connect(const char *address)
{
	struct frame_hello good = rogue_good_hello();

	return connect_saying(address, &good);
}

static void wait_until_it_has_left(struct rogue *rogue, const void *bytes)
{
	for (int i = 0; i < (is_mr_needed(rogue) ? 100 : 5); i++) {
		rogue_progress(rogue);
		if (rogue->newest == bytes)
			break;
		pump_ms(1);
	}
}

void rogue_send(struct rogue *rogue, const void *bytes, size_t size)
{
	bool injected = size <= rogue->info->tx_attr->inject_size;
	uint8_t *copy = calloc(1, size + 1);
	struct fid_mr *mr = injected ? NULL : register_bytes(rogue, copy, size, 2);

	memcpy(copy, bytes, size);
	if (injected)
		assert_int_equal(fi_inject(rogue->ep, copy, size, 0), 0);
	else
		assert_int_equal(fi_send(rogue->ep, copy, size, desc_of(mr), 0, copy), 0);
	for (int i = 0; i < 100; i++)
		rogue_progress(rogue);
	if (!injected)
		wait_until_it_has_left(rogue, copy);
	if (mr)
		fi_close(&mr->fid);
	free(copy);
}

void rogue_write_raw(struct rogue *rogue, const void *bytes, size_t size)
{
	int fd = ((const struct prov_ep *)rogue->ep)->source.fd;

	assert_true(is_own());
	if (send(fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
		fail_msg("its link has ended: %s", server.text);
}

/* With no length if there is nothing to write: some providers then ignore the key. */
bool rogue_write(struct rogue *rogue, const struct rogue_write *write)
{
	uint8_t *copy = calloc(1, write->size + 1);
	struct fid_mr *mr = register_bytes(rogue, copy, write->size + 1, 3);
	void *desc = desc_of(mr);
	struct iovec iov = {copy, write->size};
	struct fi_rma_iov to = {write->address, write->claimed ? write->claimed : write->size,
				write->key};
	size_t count = write->size > 0;
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = count,
		.rma_iov = &to,
		.rma_iov_count = count,
		.context = copy,
		.data = write->data ? *write->data : 0,
	};

	if (write->size)
		memcpy(copy, write->bytes, write->size);

	ssize_t rc = fi_writemsg(rogue->ep, &msg,
				 FI_COMPLETION | (write->data ? FI_REMOTE_CQ_DATA : 0));

	if (rc == 0)
		wait_until_it_has_left(rogue, copy);
	if (mr)
		fi_close(&mr->fid);
	free(copy);
	return rc == 0;
}

/* payload: NULL: zeros. */
static void send_frame(struct rogue *rogue, const struct frame_header *header, const void *payload)
{
	size_t size = FRAME_HEADER_BYTES + header->length;
	uint8_t *bytes = calloc(1, size);

	frame_write(bytes, header);
	if (payload)
		memcpy(bytes + FRAME_HEADER_BYTES, payload, header->length);
	rogue_send(rogue, bytes, size);
	free(bytes);
}

void rogue_send_frame(struct rogue *rogue, struct frame_header header)
{
	send_frame(rogue, &header, NULL);
}

void rogue_send_payload(struct rogue *rogue, uint8_t type, const void *payload, uint32_t length)
{
	send_frame(rogue, &(struct frame_header){type, 0, length, 8}, payload);
}

void rogue_send_first(struct rogue *rogue, uint64_t total, uint32_t length)
{
	uint8_t *payload = calloc(1, FRAME_TOTAL_BYTES + length);

	put64(payload, total);
	rogue_send_payload(rogue, FRAME_DATA_FIRST, payload, FRAME_TOTAL_BYTES + length);
	free(payload);
}

struct frame_hello rogue_good_hello(void)
{
	return (struct frame_hello){
		.magic = HELLO_MAGIC,
		.version_min = WIRE_VERSION,
		.version_max = WIRE_VERSION,
		.incarnation = 1,
		.rx_buf_bytes = 4096,
		.rx_buf_count = 8,
		.message_max = 1 << 20,
	};
}

struct frame_hello rogue_beating_hello(uint32_t heartbeat_ms, uint32_t dead_after_ms)
{
	struct frame_hello hello = rogue_good_hello();

	hello.heartbeat_ms = heartbeat_ms;
	hello.dead_after_ms = dead_after_ms;
	return hello;
}

void rogue_beat(struct rogue *rogue)
{
	rogue_send_frame(rogue,
			 (struct frame_header){FRAME_HEARTBEAT, 0, FRAME_HEARTBEAT_BYTES, 8});
}

void rogue_send_hello(struct rogue *rogue, const struct frame_hello *hello)
{
	struct frame_hello good = rogue_good_hello();
	uint8_t rest[HELLO_BYTES_MAX];
	uint32_t length = hello_write(rest, hello ? hello : &good, HELLO_REFUSED, HELLO_TYPES);

	rogue_send_payload(rogue, FRAME_HELLO, rest, length);
}

struct rogue *rogue_greet(const struct plx_listener *listener, const struct frame_hello *hello)
{
	struct frame_hello good = rogue_good_hello();
	struct rogue *rogue = connect_saying(plx_listener_address(listener), hello ?: &good);

	rogue_send_hello(rogue, hello);
	return rogue;
}

struct rogue *rogue_open(const struct plx_listener *listener, const struct frame_hello *hello)
{
	struct rogue *rogue = rogue_greet(listener, hello);

	assert_true(pump_until(&server.opened, 1, 5000));
	return rogue;
}

void rogue_expect_end(enum plx_link_reason reason, const char *part)
{
	expect_end(&server, reason);
	assert_has(server.text, part);
}

void rogue_progress(struct rogue *rogue)
{
	struct fi_cq_msg_entry entry;
	struct fi_eq_cm_entry event;
	uint32_t kind;

	if (fi_cq_read(rogue->cq, &entry, 1) == 1)
		rogue->newest = entry.op_context;
	fi_eq_read(rogue->eq, &kind, &event, sizeof(event), 0);
}

void rogue_close(struct rogue *rogue)
{
	LIST_REMOVE(rogue, open);
	fi_shutdown(rogue->ep, 0);
	fi_close(&rogue->ep->fid);
	fi_close(&rogue->cq->fid);
	if (rogue->mr)
		fi_close(&rogue->mr->fid);
	fi_close(&rogue->domain->fid);
	fi_close(&rogue->eq->fid);
	fi_close(&rogue->fabric->fid);
	fi_freeinfo(rogue->info);
	free(rogue);
}

int rogue_socket(const char *address)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	const char *colon = strrchr(address, ':');
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char host[64];

	snprintf(host, sizeof(host), "%.*s", (int)(colon - address), address);
	assert_int_equal(inet_pton(AF_INET, host, &to.sin_addr), 1);
	to.sin_port = htons((uint16_t)atoi(colon + 1));
	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

int rogue_listener(char address_out[ROGUE_ADDRESS_MAX])
{
	struct sockaddr_in name = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &bytes), 0);
	snprintf(address_out, ROGUE_ADDRESS_MAX, "127.0.0.1:%u", ntohs(name.sin_port));
	return fd;
}

void rogue_close_all(void)
{
	while (!LIST_EMPTY(&open_rogues))
		rogue_close(LIST_FIRST(&open_rogues));
}
