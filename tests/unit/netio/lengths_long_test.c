/* SPDX-License-Identifier: BSD-3-Clause */
/* The longest messages, on idle and on busy links: by reference they arrive. */
#include "lengths_fixture.h"

static void expect_refusal(const struct api *api)
{
	assert_int_equal(api->send(MIB(1024) - 1), -EMSGSIZE);
	assert_error_has("1073741823 bytes");
	assert_error_has("1073737728");
}

LENGTHS_TEST(the_longest_messages_arrive_by_reference)
{
	static const size_t lengths[] = {MIB(512), WIRE_MESSAGE_MAX_LIMIT};

	all_up(provider);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(by_reference); i++) {
		const struct api *api = &by_reference[i];

		for (unsigned j = 0; j < PLX_ARRAY_LEN(lengths); j++) {
			expect_refusal(api);
			refer(api, lengths[j]);
			expect_references(api->copies, lengths[j]);
			refer(api, MIB(40)); /* now the link is busy */
			expect_refusal(api);
			refer(api, lengths[j]);
			expect_references(2 * api->copies, lengths[j]);
		}
	}
	expect_no_loss();
}

PLX_TEST_MAIN()
