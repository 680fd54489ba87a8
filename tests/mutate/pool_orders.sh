#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The memory orders of pools, buffers and zones, and the steps of what threads share of a pool: see
# orders.sh.
#
#     tests/mutate/pool_orders.sh [TEXT]      only the mutants whose name has TEXT in it
# shellcheck source=tests/mutate/orders.sh
. "$(dirname "${BASH_SOURCE[0]}")/orders.sh"

subject lib/mem "$@"

archive whole -fsanitize=thread '-DPLX_VERSION=""' -Ilib/ring -Ilib/mem lib/base/*.c lib/ring/*.c lib/mem/*.c

# The macro is gcc's, and makes one of them shorter.
with='-fsanitize=thread -D__SANITIZE_THREAD__ -Ilib/ring @@ %whole -lnuma'
program stress/pools_test.c 60 "$with" 2000
program unit/mem/buf_test.c 60 "$with"
program unit/mem/pool_shared_test.c 60 "$with"
program unit/mem/pool_test.c 60 "$with"

order_mutants pool_owned.c pool_shared.c pool.c buf.c
spare 'pool_shared.c spare_pop 2 acquire to relaxed' \
	'the same head was acquired before; see: a pop of spare ones acquires nothing'
# That what is read of a link is not older than the head: x86 loads in the order they were made in.
unseen 'pool_shared.c spare_pop 1 acquire to relaxed' 'a link is loaded after its head, on x86 anyway'
unseen 'pool_shared.c spare_pop 3 acquire to relaxed' 'a link is loaded after its head, on x86 anyway'

mutant 'an owned pool takes the list without swapping it' pool_owned.c \
	's/own->taken = atomic_exchange_explicit(&pool->list, NULL, .*/{ own->taken = atomic_load(\&pool->list); sched_yield(); atomic_store(\&pool->list, NULL); }/'
mutant 'pops of spare ones are not counted' pool_shared.c 's/pops << NUMBER_BITS | number/number/'
mutant 'the last spare one of a push is not linked' pool_shared.c '/^\t\tset_link(pool, objects\[count - 1\]/d'
mutant 'spare ones are not looked for' pool_shared.c 's/got < count && has_spare(pool)/false/'
mutant 'a pop of spare ones acquires nothing' pool_shared.c '/^static uint32_t spare_pop/,/^}/s/order_acquire/order_relaxed/g'

try_all
