/* SPDX-License-Identifier: BSD-3-Clause */
#include "base_internal.h"
#include "plx_test.h"

static void expect(const char *name, const void *bytes, size_t length)
{
	const char *found = plx_sounds_like(bytes, length);

	if (!name)
		assert_null(found);
	else
		assert_string_equal(found ? found : "nothing", name);
}

PLX_TEST(known_protocols_are_named)
{
	static const uint8_t tls[] = {0x16, 0x03, 0x01, 0x02, 0x00, 0x01};
	static const uint8_t zmtp[] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3};
	static const uint8_t link[] = {1, 0, 0, 0, 48, 0, 0,   0,   6,   0,
				       0, 0, 0, 0, 0,  0, '1', 'X', 'L', 'P'};
	static const uint8_t netio[] = {1, 1, 2, 0, 'N', 't', 'I', 'O', 0};

	expect("HTTP", "GET / HTTP/1.1\r\n", 16);
	expect("HTTP", "POST /x HTTP/1.1\r\n", 18);
	expect("HTTP", "HTTP/1.1 400 Bad Request\r\n", 26);
	expect("HTTP", "PRI * HTTP/2.0\r\n", 16);
	expect("HTTP", "<!DOCTYPE HTML PUBLIC \"-//W3C", 29);
	expect("TLS", tls, sizeof(tls));
	expect("TLS", "\x15\x03\x01\x00\x02\x02\x46", 7);
	expect("SSH", "SSH-2.0-OpenSSH_9.2\r\n", 21);
	expect("ZeroMQ", zmtp, sizeof(zmtp));
	expect("a Pollux link", link, sizeof(link));
	expect("NetIO", netio, sizeof(netio));
	expect("Pollux RPC", "PRPC\1\1\1", 7);
}

PLX_TEST(unknown_protocols_have_no_name)
{
	static const uint8_t ones[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

	expect(NULL, NULL, 0);
	expect(NULL, "", 0);
	expect(NULL, "GET", 3);
	expect(NULL, "get / ", 6);
	expect(NULL, "\x16", 1);
	expect(NULL, "\xff\0\0\0\0\0\0\0\1", 9);
	expect(NULL, ones, sizeof(ones));
	expect(NULL, "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0001XL", 19);
	expect(NULL, "hello", 5);
}

PLX_TEST_MAIN()
