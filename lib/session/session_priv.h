/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two sides share. */
#ifndef SESSION_PRIV_H
#define SESSION_PRIV_H

#include "session.h"

extern struct plx_log_component *const session_log;

bool connector_any_closing(void);

/* What settles got on. */
void session_note_progress(void);

#endif
