/* SPDX-License-Identifier: BSD-3-Clause */
/* A service for tests with hostile peers: it accepts every request and echoes each message. An
 * honest client stays connected throughout. */
#ifndef TCP_TEST_SERVICE_H
#define TCP_TEST_SERVICE_H

#define TESTED tcp_kind

#include "prov/cm.h"
#include "raw.h"

#define SERVICE_ENDPOINTS 16
#define SERVICE_RECEIVES  4   /* of an endpoint */
#define SERVICE_BUF_BYTES 256 /* of a receive */
#define SERVICE_MR_BYTES  4096
#define SERVICE_LOOKS_MAX 3000000
#define SERVICE_READABLE  0x1001 /* keys of memory */
#define SERVICE_WRITABLE  0x1002

struct visitor;

struct service_receive {
	struct visitor *visitor;
	uint8_t buf[SERVICE_BUF_BYTES];
};

/* An endpoint of the service. */
struct visitor {
	struct fid_ep *ep; /* NULL: the slot is free */
	struct service_receive receives[SERVICE_RECEIVES];
};

struct service {
	struct party server, client;
	struct fid_pep *fid;
	struct tcp_pep *pep; /* the same */
	struct sockaddr_storage address;
	struct fid_mr *readable_mr, *writable_mr;
	uint8_t readable[SERVICE_MR_BYTES], writable[SERVICE_MR_BYTES];
	struct visitor visitors[SERVICE_ENDPOINTS];
	uint32_t visitor_count;
	/* Since the start. */
	uint64_t accepted, ended, messages, errors;
	bool posts_none; /* no receives for later connections */
	struct fid_ep *honest;
	uint64_t sent, echoed;
	uint64_t echo_buf;
};
extern struct service service;

/* For each test: the second fails if descriptors or memory are leaked. */
int service_setup(void **state);
int service_teardown(void **state);

/* Do the work of one loop turn. */
void service_turn(void);
/* The honest client sends a message, and must get it back. */
void service_expect_echo(void);
/* The only visitor; the honest client does not count. */
struct tcp_ep *service_visitor(void);
void service_close_visitor(void);

uint64_t service_refused(void); /* of all causes */
/* Connections that the service, or another party, closed for that breach. */
uint64_t service_breaches(enum tcp_breach breach);
uint64_t party_breaches(const struct party *party, enum tcp_breach breach);
/* Wait until that many connections have ended, all for that breach. */
void service_expect_breach(enum tcp_breach breach, uint64_t count);

#define service_until(condition)                                      \
	do {                                                          \
		for (int looks_ = 0; !(condition); looks_++) {        \
			if (looks_ == SERVICE_LOOKS_MAX)              \
				fail_msg("never so: %s", #condition); \
			service_turn();                               \
		}                                                     \
	} while (0)

/* Wait until only the honest client is connected; it must still get its echo. */
void service_expect_calm(void);

/* A plain socket's connection, already accepted. */
int service_visit(void);
/* Close or reset one, and expect calm. */
void service_leave(int fd);
void service_reset(int fd);
/* Whether the service closes a connection that sends those bytes after its HELLO. */
bool service_ends(const void *bytes, size_t length);

static inline struct fi_info *service_info(const char *port, uint64_t flags)
{
	return cm_info_of_size("127.0.0.1", port, flags, 0);
}

/* An enabled endpoint. */
static inline struct fid_ep *service_ep(struct party *party, struct fi_info *info, void *context)
{
	struct fid_ep *ep = party_ep(party, info);

	ep->fid.context = context;
	assert_int_equal(fi_enable(ep), 0);
	return ep;
}

#define SERVICE_TEST(name) PLX_TEST_WITH(name, service_setup, service_teardown)

#endif
