/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * For programs that include it next to netio.h, as those written for NetIO-next do. A FelixID is a
 * tag of 64 bits: netio_tag_t. Everything else in FELIX' header of this name is not public, and
 * not here.
 */
#ifndef FELIXTAG_H
#define FELIXTAG_H

#include "netio_socket.h"

#endif
