/* SPDX-License-Identifier: BSD-3-Clause */
/* Put in front of each C file of a sanitizer build. AddressSanitizer does not look at what
 * pthread_mutex_lock itself reads, and ThreadSanitizer reports only a mutex that was destroyed and
 * whose memory is unused. So that both report a mutex in freed memory, it is read here first. */
#include <pthread.h>

static inline pthread_mutex_t *mutex_checked(pthread_mutex_t *mutex)
{
	(void)*(volatile char *)mutex;
	return mutex;
}

#define pthread_mutex_destroy(mutex) pthread_mutex_destroy(mutex_checked(mutex))
#define pthread_mutex_lock(mutex)    pthread_mutex_lock(mutex_checked(mutex))
#define pthread_mutex_trylock(mutex) pthread_mutex_trylock(mutex_checked(mutex))
#define pthread_mutex_unlock(mutex)  pthread_mutex_unlock(mutex_checked(mutex))
