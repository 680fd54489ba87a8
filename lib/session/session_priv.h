/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by both sides. */
#ifndef SESSION_PRIV_H
#define SESSION_PRIV_H

#include "session.h"

extern struct plx_log_component *const session_log;

bool connector_any_closing(void);

/* A settling session made progress. */
void session_note_progress(void);

#endif
