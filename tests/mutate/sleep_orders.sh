#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The memory orders and the steps of how lcores fall asleep and are woken, and of signals: see
# orders.sh.
#
#     tests/mutate/sleep_orders.sh [TEXT]      only the mutants whose name has TEXT in it
# shellcheck source=tests/mutate/orders.sh
. "$(dirname "${BASH_SOURCE[0]}")/orders.sh"

subject lib/lcore "$@"

includes='-Ilib/ring -Ilib/topo -Ilib/mem'
# shellcheck disable=SC2086 # words are meant to be split
archive below -fsanitize=thread '-DPLX_VERSION=""' $includes -Ilib/lcore{,/loop,/idle,/messages} \
	lib/base/*.c lib/ring/*.c lib/topo/*.c lib/mem/*.c lib/lcore/{,*/}*.c

with="-fsanitize=thread $includes -Itests/unit/lcore"
program unit/lcore/signal_test.c 20 "$with @@ %below -lnuma -lhwloc"
program unit/lcore/fd_test.c 20 "$with @@ %below -lnuma -lhwloc"
program stress/sleep_test.c 60 "-include tests/stress/step.h @/sleep.c @/wake.c @/lane.c \
	@/message.c @/signal.c $with %below -lnuma -lhwloc" '5000 20'
program unit/lcore/sleep_test.c 60 "$with @@ %below -lnuma -lhwloc"

order_mutants sleep.c wake.c signal.c

modelled 'sleep.c sleep_until_work 1 seq_cst to release' sleep MUT_PLAIN_SLEEPING
modelled 'sleep.c sleep_until_work 1 seq_cst to relaxed' sleep MUT_PLAIN_SLEEPING
spare 'wake.c wake_write 1 seq_cst to acq_rel' 'the load before it is S2'
spare 'wake.c wake_write 1 seq_cst to relaxed' 'the load before it is S2; the write is a system call'
for name in 'wake_open 1 seq_cst to release' 'wake_open 1 seq_cst to relaxed' \
	'wake_all 1 seq_cst to acquire' 'wake_all 1 seq_cst to relaxed'; do
	unseen "wake.c $name" 'a stop at the very moment that an lcore gets its eventfd'
done
modelled 'signal.c plx_signal_fire 3 seq_cst to acq_rel' sleep MUT_OTHERS_PLAIN_RING
modelled 'signal.c plx_signal_fire 3 seq_cst to relaxed' sleep MUT_OTHERS_PLAIN_RING
unseen 'signal.c plx_signal_fire 2 release to relaxed' \
	'the bell is rung after it, with release; x86 shows stores in their order anyway'
unseen 'signal.c take_fired 1 acquire to relaxed' \
	'the bell is acquired before; x86 loads what is pushed just then after its pusher anyway'

# Falling asleep
mutant 'it does not announce its sleep' sleep.c 's/^\tatomic_store_explicit(&bell->sleeping, 1, .*/\t;/'
mutant 'it looks once more before it announces its sleep' sleep.c \
	'/^\tatomic_store_explicit(&bell->sleeping, 1,/{h;d};s/^\tif (messages_wait(loop)).*/\tbool waits = messages_wait(loop); stress_step_or_not(); atomic_store(\&bell->sleeping, 1); if (waits)/;1i void stress_step_or_not(void) __attribute__((weak));\nvoid stress_step_or_not(void) { for (volatile int i = 0; i < 2000; i++); }'
mutant 'nobody looks once more before sleeping' message.c '/^bool messages_wait/,/^}/s/return .*/return false;/'
mutant 'nobody looks into the lanes once more' lane.c \
	'/^bool lanes_wait/,/^}/s/\t\t\t\treturn true;/\t\t\t\treturn false;/'
mutant 'events are taken after the second look' sleep.c 's/^\tcount = fds_wait(/\tfds_wait(\&loop->fds, 0);\n&/'
mutant 'the eventfd is not waited for' fd.c 's/-errno : add(&fds->set, &fds->bell, EPOLLIN | EPOLLET)/-errno : 0/'
mutant 'timers do not end it' sleep.c 's/^\tlimit(sleep, due.next_ns, PLX_WAKE_TIMER);/\tdue.exact_ns = UINT64_MAX;/'
mutant 'what libraries watch does not end it' fd.c \
	's/^\treturn plx_watch_in(fds->epoll/\treturn watch != \&fds->bell ? 0 : plx_watch_in(fds->epoll/'
mutant 'the eventfd is level-triggered, and never read' fd.c 's/EPOLLIN | EPOLLET)/EPOLLIN)/'
mutant 'the event of a removed descriptor stays' fd.c \
	'/^static void take_out/,/^}/{/^\tforget(/d;}'
mutant 'the event of a changed descriptor stays' fd.c '/^\tif (err == 0) \/\* the kernel/,/;/d'
mutant 'it sleeps whatever its pollers say' sleep.c 's/^\t\tidle->refusals++;/\t\treturn true;/'

# Waking
mutant 'the thread that clears the word does not write' wake.c '/^\tring(bell->eventfd);/d'
mutant 'the writer clears the word after that' wake.c \
	'/^\tif (!atomic_exchange_explicit(&bell->sleeping/,/^\t\treturn;/d;s/^\tring(bell->eventfd);/&\n\tatomic_store(\&bell->sleeping, 0);/'
mutant 'a stop wakes nobody' wake.c 's/^\t\tif (fd >= 0)$/\t\tif (false)/'

# Signals
mutant 'a fire does not ring' signal.c '/^\tatomic_fetch_or_explicit(&loop->bell.others, OTHERS_SIGNALS, memory_order_seq_cst);/d'
mutant 'a fire wakes nobody' signal.c '/^\twake_if_asleep(&loop->bell);/d'
mutant 'each fire pushes' signal.c 's/memory_order_acq_rel) != 0)/memory_order_acq_rel) == UINT64_MAX)/'
mutant 'the next one is read when the function has run' signal.c \
	'/^\t\tsignals->first = signal->next;/d;s/^\t\tsignal->fn(signal, fires, signal->arg);/&\n\t\tsignals->first = signal->next;/'
mutant 'the newest comes first' signal.c \
	's/^\t\ttop->next = oldest;/\t\ttop->next = oldest; if (!oldest) end = \&top->next;/;s/^\t\toldest = top;/\t\tif (!oldest) oldest = top;/'
mutant 'what is left for the next turn is not rung for' signal.c '/^\tif (signals->first) \/\* relaxed/,/;/d'

try_all
