/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * For authors of providers: the calls by which a provider asks whether it may take an incoming
 * connection, before it reads anything from it. lib/fabric answers with the limits of a listener.
 */
#ifndef PLX_ADMIT_H
#define PLX_ADMIT_H

#include "plx_base.h"

#include <sys/socket.h>

PLX_BEGIN_DECLS

#define PLX_ADMIT_DATA_MAX 16 /**< private data of a refusal, in bytes */

enum plx_admit_verdict {
	PLX_ADMIT_TAKE,   /**< read its request now */
	PLX_ADMIT_KEEP,   /**< read nothing; ask again after wait_ns */
	PLX_ADMIT_REFUSE, /**< reject it, and close it; it has no ticket */
};

/** Why a provider ended a connection before its request was reported. */
enum plx_admit_end {
	PLX_ADMIT_SILENT,   /**< it sent no request in time */
	PLX_ADMIT_LEFT,     /**< the peer closed it before a byte of it was read */
	PLX_ADMIT_EVICTED,  /**< by `close`, or as no_descriptor asked */
	PLX_ADMIT_STRANGER, /**< what it sent is no request */
	PLX_ADMIT_VERSION,  /**< the same: of another version */
	PLX_ADMIT_CUT,      /**< the peer closed it inside its request */
	PLX_ADMIT_FAILED,   /**< this side failed: memory, or its listener closed */
	PLX_ADMIT_ENDS,
};

/** A connection that asks. */
struct plx_admit_request {
	void *connection;            /**< the provider's name for it */
	const struct sockaddr *peer; /**< NULL: a process of this host, of the user `user` */
	uid_t user;
	void *ticket; /**< of a connection that was kept for as long as asked; NULL: it is new */
	/** Reject another connection of this provider with that private data, and close it, before
	 * its request is reported. On the thread of these calls; also inside `accepted`. */
	void (*close)(void *connection, const void *data, size_t length);
};

struct plx_admit_answer {
	enum plx_admit_verdict verdict;
	uint64_t wait_ns;                 /**< of PLX_ADMIT_KEEP */
	void *ticket;                     /**< unless refused: of the connection from now on */
	uint8_t data[PLX_ADMIT_DATA_MAX]; /**< private data of a refusal */
	size_t data_length;
};

/** The calls of one passive endpoint. They run on the thread that reads its event queue, and must
 * not call the provider, except for `close`. */
struct plx_admit_calls {
	/** A connection was accepted, or has been kept for as long as asked. */
	void (*accepted)(void *arg, const struct plx_admit_request *request,
			 struct plx_admit_answer *answer_out);
	/** Its request arrived and is reported (FI_CONNREQ). The provider no longer ends it: the
	 * ticket belongs to the owner of the table. */
	void (*opened)(void *ticket);
	/** It ended before that. why: a text about the peer, valid during the call; NULL: its
	 * listener closed. */
	void (*ended)(void *ticket, enum plx_admit_end end, const char *why);
	/** The process has no descriptor for another connection. Return: a connection to close;
	 * NULL: none, accepting pauses. */
	void *(*no_descriptor)(void *arg);
	void *arg; /**< outlives the passive endpoint */
};

PLX_END_DECLS

#endif
