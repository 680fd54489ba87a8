/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the parts of exception_netio in C and in C++. */
#ifndef EXCEPTION_NETIO_H
#define EXCEPTION_NETIO_H

#ifdef __cplusplus
extern "C" {
#endif

/* In C++. */
void throw_exception(const char *what);
void catch_exception(void (*call)(void));

/* In C. */
void throw_in_each_callback(void);

#ifdef __cplusplus
}
#endif

#endif
