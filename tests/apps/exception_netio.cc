/* SPDX-License-Identifier: BSD-3-Clause */
/* As exception.cc, for the callbacks of NetIO's objects: exception_netio.c throws in each of them. */
#include "exception_netio.h"
#include "netio/netio.h"

#include <cstdio>
#include <stdexcept>

void throw_exception(const char *what)
{
	throw std::runtime_error(what);
}

void catch_exception(void (*call)(void))
{
	try {
		call();
	} catch (const std::runtime_error &) {
	}
}

int main()
{
	struct netio_context context;

	if (netio_init(&context) != 0)
		return 1;
	throw_in_each_callback();
	return netio_fini(&context) == 0 ? 0 : 1;
}
