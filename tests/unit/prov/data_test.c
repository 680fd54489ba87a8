/* SPDX-License-Identifier: BSD-3-Clause */
#include "data.h"

#define DATA_TEST(name, up) PLX_TEST_AGAIN(name, up, tear_down)

DATA_TEST(messages_of_all_sizes_arrive, set_up)
DATA_TEST(messages_of_all_sizes_arrive, set_up_two_cqs)
DATA_TEST(a_message_may_come_before_its_receive, set_up)
DATA_TEST(pieces_are_gathered_and_scattered, set_up)
DATA_TEST(more_pieces_than_the_limit_are_refused, set_up)
DATA_TEST(data_comes_with_a_message, set_up)
DATA_TEST(an_inject_makes_no_completion_and_has_a_limit, set_up)
DATA_TEST(a_message_too_long_for_its_receive_is_truncated_and_said_so, set_up)
DATA_TEST(selected_operations_alone_complete, set_up_selective)
DATA_TEST(limits_are_kept, set_up_small)
DATA_TEST(two_that_wait_for_delivery_do_not_wait_for_each_other, set_up_two_cqs)
DATA_TEST(a_receive_can_be_cancelled, set_up)
DATA_TEST(order_is_kept_over_kinds_of_messages, set_up)
DATA_TEST(both_directions_are_independent, set_up)
DATA_TEST(a_quiet_connection_is_heard, set_up)

TESTED_MAIN()
