/* SPDX-License-Identifier: BSD-3-Clause */
#include "data.h"

#define DATA_TEST(name, up) PLX_TEST_AGAIN(name, up, tear_down)

DATA_TEST(messages_of_all_sizes_arrive, set_up)
DATA_TEST(messages_of_all_sizes_arrive, set_up_two_cqs)
DATA_TEST(a_message_may_arrive_before_its_receive_is_posted, set_up)
DATA_TEST(pieces_are_gathered_and_scattered, set_up)
DATA_TEST(more_pieces_than_the_limit_are_refused, set_up)
DATA_TEST(immediate_data_arrives_with_its_message, set_up)
DATA_TEST(an_inject_has_no_completion_and_a_size_limit, set_up)
DATA_TEST(a_message_longer_than_its_receive_is_truncated_with_an_error, set_up)
DATA_TEST(only_selected_operations_complete, set_up_selective)
DATA_TEST(sizes_of_queues_are_enforced, set_up_small)
DATA_TEST(two_sides_that_wait_for_delivery_do_not_deadlock, set_up_two_cqs)
DATA_TEST(a_receive_can_be_cancelled, set_up)
DATA_TEST(messages_of_different_kinds_stay_in_order, set_up)
DATA_TEST(both_directions_are_independent, set_up)
DATA_TEST(a_message_on_a_quiet_connection_arrives, set_up)

TESTED_MAIN()
