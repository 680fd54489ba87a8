/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What every part of Pollux stands on: compile-time helpers, error texts, the log, the TSC clock,
 * and the index of the calling lcore. Knows nothing of any other library.
 */
#ifndef PLX_BASE_H
#define PLX_BASE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
#define PLX_BEGIN_DECLS \
	extern "C" {    \
	_Pragma("GCC visibility push(default)")
#define PLX_END_DECLS                 \
	_Pragma("GCC visibility pop") \
	}
#else
#define PLX_BEGIN_DECLS _Pragma("GCC visibility push(default)")
#define PLX_END_DECLS   _Pragma("GCC visibility pop")
#endif

/* A field that is accessed atomically by this library, and by its inline functions: those use
 * plx_atomic_load and plx_atomic_store, which C++ understands too, with these orders. */
#ifdef __cplusplus
#define PLX_ATOMIC(type)                       type
#define plx_atomic_load(object, order)         __atomic_load_n((object), (order))
#define plx_atomic_store(object, value, order) __atomic_store_n((object), (value), (order))
#else
#include <stdatomic.h>
#define PLX_ATOMIC(type)                       _Atomic(type)
#define plx_atomic_load(object, order)         atomic_load_explicit((object), (order))
#define plx_atomic_store(object, value, order) atomic_store_explicit((object), (value), (order))
#endif
#define PLX_RELAXED      __ATOMIC_RELAXED
#define PLX_ACQUIRE      __ATOMIC_ACQUIRE
#define PLX_RELEASE      __ATOMIC_RELEASE

#define PLX_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define PLX_CACHE_LINE   64

/* Attributes. PLX_CLEANUP: of a variable, whose scope's end calls the function with its address. */
#define PLX_ALIGNED(bytes) __attribute__((aligned(bytes)))
#define PLX_ALIGNED_LINE   PLX_ALIGNED(PLX_CACHE_LINE)
#define PLX_ALWAYS_INLINE  __attribute__((always_inline))
#define PLX_CLEANUP(fn)    __attribute__((cleanup(fn), unused))
#define PLX_CONSTRUCTOR    __attribute__((constructor))
#define PLX_DESTRUCTOR     __attribute__((destructor))
#define PLX_EXPORT         __attribute__((visibility("default")))
#define PLX_INITIAL_EXEC   __attribute__((tls_model("initial-exec")))
#define PLX_NOINLINE       __attribute__((noinline))
#define PLX_PRINTF(f, a)   __attribute__((format(printf, f, a)))
#define PLX_UNUSED         __attribute__((unused))

#define plx_likely(x)      __builtin_expect(!!(x), 1)
#define plx_unlikely(x)    __builtin_expect(!!(x), 0)

/* PLX_CAST: between numbers, and from void pointers. */
#ifdef __cplusplus
#define PLX_CAST(type, value) static_cast<type>(value)
#define plx_container_of(ptr, type, member) \
	reinterpret_cast<type *>(reinterpret_cast<uintptr_t>(ptr) - offsetof(type, member))
#else
#define PLX_CAST(type, value)               ((type)(value))
#define plx_container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
#endif

/* Fetch the line of p into the cache, to read it soon, or (write) to own it: no other cache has it
 * then. Never faults. gcc knows PREFETCHW only where the target is told to have it; every x86-64
 * processor takes the instruction, some older ones as one that does nothing (Intel SDM, 2B). */
#define plx_prefetch_read(p) __builtin_prefetch((p), 0)
#ifdef __x86_64__
static inline void plx_prefetch_write(const void *p)
{
	__asm__ volatile("prefetchw %0" : : "m"(*PLX_CAST(const char *, p)));
}
#else
#define plx_prefetch_write(p) __builtin_prefetch((p), 1)
#endif

#define PLX_NS_PER_US UINT64_C(1000)
#define PLX_NS_PER_MS UINT64_C(1000000)
#define PLX_NS_PER_S  UINT64_C(1000000000)

/* Attributes: in structures that are named _attr or _conf, 0 or NULL is the default. Of an id, as
 * of an lcore or a node, 0 is the first one. Where a declaration names one of these, they mean: */
#define PLX_NEVER    UINT64_MAX /**< of a time: it does not come; functions that wait take it, too */
#define PLX_NO_LIMIT UINT32_MAX /**< of the most that something may count: no limit */
#define PLX_NONE     UINT32_MAX /**< of what is there by default, and of an id: none */

PLX_BEGIN_DECLS

/** The version of the library that is running, "major.minor.patch". Thread: any. */
const char *plx_version(void);

/* Errors ----------------------------------------------------------------------------------- */

/** The text of this thread's last failed call into Pollux: what was given, what is allowed, what to
 * do. Valid until the next failing call on this thread; "" before the first. A call that succeeds
 * may leave one, too, of what it tried in vain. Back-pressure is no failure, and leaves the text as
 * it is, so that it costs nothing: -EAGAIN from what sends, NULL from a pool that is empty, and
 * less than was asked for from a ring. An older call's text is not theirs: ask for it after other
 * errors only. Thread: any. */
const char *plx_error(void);

/** Set this thread's error text and return -err, so that a function can `return plx_fail(...)`.
 * err: a positive errno value. Thread: any. */
int plx_fail(int err, const char *format, ...) PLX_PRINTF(2, 3);

/** Put text in front of this thread's error text: for a caller that passes an error up and knows
 * more of its origin (a file and line, say). Returns err as it was given. Thread: any. */
int plx_fail_in(int err, const char *format, ...) PLX_PRINTF(2, 3);

/* Log -------------------------------------------------------------------------------------- */

enum plx_log_level { PLX_LOG_ERROR, PLX_LOG_WARNING, PLX_LOG_NOTICE, PLX_LOG_INFO, PLX_LOG_DEBUG };

/** A part of the program whose messages are filtered together. Define with PLX_LOG_COMPONENT. */
struct plx_log_component {
	const char *name;
	enum plx_log_level level; /**< messages above it are dropped; PLX_LOG_NOTICE at first */
	struct plx_log_component *next;
};

/** Where messages go. line has no newline and is valid during the call only. */
typedef void (*plx_log_sink)(enum plx_log_level level, const char *component, const char *line,
			     void *arg);

/** Send messages to sink instead of plx_log_to_stderr, where they go at first; NULL turns the log
 * off. The sink is called by the thread that logs. Thread: setup. */
void plx_log_set_sink(plx_log_sink sink, void *arg);

/** The default sink: writes "TIME component: level: text" lines to standard error by
 * plx_write_or_drop. TIME is UTC to the millisecond, as in "2026-11-26T04:30:16.123Z" (ISO 8601).
 * Thread: any. */
void plx_log_to_stderr(enum plx_log_level level, const char *component, const char *line,
		       void *arg);

/** Apply "[component:]level": level is error, warning, notice, info, debug or 0 to 4.
 * option: how the user named the setting, for the error text.
 * Thread: setup. Return: 0; -EINVAL unknown level or component (the text lists what there is). */
int plx_log_configure(const char *option, const char *text);

/** Make a component known to plx_log_configure. PLX_LOG_COMPONENT calls it before main. */
void plx_log_register(struct plx_log_component *component);

/** Format and send one message; use plx_log, which filters first. Thread: any. */
void plx_log_write(enum plx_log_level level, const struct plx_log_component *component,
		   const char *format, ...) PLX_PRINTF(3, 4);

#define plx_log(component, lvl, ...)                                    \
	do {                                                            \
		if ((lvl) <= (component)->level)                        \
			plx_log_write((lvl), (component), __VA_ARGS__); \
	} while (0)

/** Define a static component `variable` named `text` and register it when the program loads. */
#define PLX_LOG_COMPONENT(variable, text)                                                     \
	static struct plx_log_component variable = {.name = (text), .level = PLX_LOG_NOTICE}; \
	PLX_CONSTRUCTOR static void variable##_register(void)                                 \
	{                                                                                     \
		plx_log_register(&variable);                                                  \
	}                                                                                     \
	struct plx_log_component /* takes the semicolon */

/** At most `burst` messages a second about what a peer can cause as often as it likes. */
struct plx_log_limit {
	uint64_t second;     /**< the second that `used` counts */
	unsigned used;       /**< messages let through in it */
	unsigned burst;      /**< how many may pass each second; 0 means 10 */
	uint64_t suppressed; /**< dropped in all */
};

/** Whether one more message may pass now. Thread: owner of the limit. */
bool plx_log_allowed(struct plx_log_limit *limit, uint64_t now_ns);

/* Output ----------------------------------------------------------------------------------- */

/** write(2) that sends no signal: a pipe or socket without a reader gives -EPIPE and a file at its
 * limit of size -EFBIG, whatever the process does with SIGPIPE and SIGXFSZ. Four system calls more.
 * Thread: any. Return: bytes; -errno. */
ssize_t plx_write(int fd, const void *data, size_t len);

/** Write text to a descriptor if it takes it now, and lose it if not: an lcore must not wait for
 * the reader of its output. Never a signal, as plx_write. Thread: any. Return: 0; -EAGAIN the
 * reader is slow, the rest is lost; -EPIPE there is no reader; another -errno of write(2). */
int plx_write_or_drop(int fd, const char *text, size_t len);

/** Open /dev/null as each of descriptors 0 to 2 that is closed, so that none of Pollux' own gets
 * such a number and is written to as standard output. Reading or writing them still fails with
 * EBADF. plx_eal_init calls it. Thread: setup. */
void plx_hold_stdio(void);

/* Random numbers --------------------------------------------------------------------------- */

/** Fill size bytes from the kernel's random source, by getrandom(2): fit for keys. Aborts where the
 * kernel has none, as arc4random(3) does. A system call: for set-up. Thread: any. */
void plx_random(void *out, size_t size);

/** A random number that nobody can guess; never 0. Thread: as plx_random. */
uint64_t plx_random_id(void);

/** What a hash depends on besides its input. Random, so that nobody can choose inputs that meet. */
struct plx_siphash_key {
	uint64_t k0, k1;
};

/** SipHash-2-4 of length bytes. Who knows hashes but not the key cannot compute another hash.
 * Aumasson and Bernstein, "SipHash: a fast short-input PRF" (INDOCRYPT 2012). 16 ns for 24 bytes.
 * Thread: any. */
uint64_t plx_siphash(const struct plx_siphash_key *key, const void *data, size_t length);

/* Text of others ------------------------------------------------------------------------------- */

#define PLX_PRINTABLE_BYTES 5 /**< one character, and NUL */

/** The first character of text that somebody else wrote, in a form that steers no terminal and is
 * valid in JSON: printable characters of ASCII, and those of UTF-8 from U+00A0 on, as they are; a
 * backslash twice; of all else one byte, as in a string of C: a backslash, "x" and two digits.
 * length: bytes that are there, at least 1. plain: more characters of ASCII that stay as they are,
 * such as a line feed. Thread: any. Return: how many bytes of text it took, at least 1. */
size_t plx_printable_next(const void *text, size_t length, const char *plain,
			  char out[PLX_PRINTABLE_BYTES]);

/** The same of a whole string, cut after the last character that fits. Four bytes for each byte of
 * text are enough, and one more. Thread: any. Returns out. */
const char *plx_printable(const char *text, char *out, size_t size);

/* Values --------------------------------------------------------------------------------------- */

/** Parse a whole number ("7"), a size ("64", "4K", "1M", "2G"; bytes), or a duration ("1.5s",
 * "20us", "5min", "1h", "1d"; seconds where there is no unit). max 0: there is none. option: how
 * the user named it, for the text. Thread: any. Return: 0; -EINVAL, saying what is allowed. */
int plx_parse_uint(const char *option, const char *text, uint64_t min, uint64_t max,
		   uint64_t *value_out);
int plx_parse_size(const char *option, const char *text, uint64_t min, uint64_t max,
		   uint64_t *value_out);
int plx_parse_duration(const char *option, const char *text, uint64_t min_ns, uint64_t max_ns,
		       uint64_t *value_out);

/** A number that is set by its key. */
struct plx_setting {
	const char *key;
	uint32_t *value;
	uint32_t least, most;
	const char *help;
};

/** Parse "KEY=VALUE,...". settings: what there is, ended by one without a key. check: set nothing.
 * Thread: any. Return: 0; -EINVAL, saying what is allowed; then earlier ones may have been set. */
int plx_parse_settings(const char *option, const char *text, const struct plx_setting *settings,
		       bool check);

/* Clock ------------------------------------------------------------------------------------ */

/** How the clock was found and how good it is. */
struct plx_clock_info {
	const char *source;    /**< "tsc", "cntvct" or "clock_monotonic_raw" */
	const char *frequency; /**< where its frequency comes from: "measured", "cpuid", ... */
	double hz;             /**< counts per second */
	double residual_ppm;   /**< uncertainty of hz */
	bool invariant;        /**< runs at one rate in every power state, and across CPUs */
};

/** Calibrate the clock against CLOCK_MONOTONIC_RAW; takes about 10 ms the first time, then nothing.
 * Every init function of Pollux calls it. Thread: any. */
void plx_clock_init(void);

/** What the clock is. Calls plx_clock_init. Thread: any. */
const struct plx_clock_info *plx_clock_info(void);

/** How far, in parts per million, the clock ran from CLOCK_MONOTONIC_RAW since plx_clock_init:
 * measured over the whole time since, so the longer the process ran the better. Thread: any. */
double plx_clock_drift_ppm(void);

/** Compare the clock with CLOCK_MONOTONIC_RAW, which stands still while the host is suspended. If
 * they moved apart by more than 10 ms since the last look, as the counter stepped when the host
 * resumed or a virtual machine moved, correct the clock, count that, and log a warning. Lcores call
 * it; a program that turns no loop may call it about ten times a second.
 * at_once: otherwise it does nothing within 100 ms of the last look.
 * Thread: any. */
void plx_clock_look(bool at_once);

/** How often plx_clock_look corrected the clock. Thread: any. */
uint64_t plx_clock_steps(void);

/** How long the host was suspended since plx_clock_init, as of the last look: what CLOCK_BOOTTIME
 * counts and CLOCK_MONOTONIC does not. Thread: any. */
uint64_t plx_clock_suspended_ns(void);

/** Private: ns = counts * mult / 2^32 + base_ns, modulo 2^64. mult is set by plx_clock_init, and
 * constant afterwards; base_ns is all corrections since. Alone in its cache line, as every look at
 * the time reads it. */
struct plx_clock_scale {
	uint64_t mult;
	PLX_ATOMIC(uint64_t) base_ns;
} PLX_ALIGNED_LINE;
extern struct plx_clock_scale plx_clock_scale;

/** The raw counter. Not ordered against the instructions around it: fine for stamps that are
 * micro-seconds apart. Thread: any. */
static inline uint64_t plx_tsc(void)
{
#if defined(__x86_64__)
	/* Builtins here and below: including <x86intrin.h> takes most of the compile time. */
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t count;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
	return count;
#else
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return PLX_CAST(uint64_t, ts.tv_sec) * PLX_NS_PER_S + PLX_CAST(uint64_t, ts.tv_nsec);
#endif
}

/** plx_tsc() when all that was loaded before it is there: the stamp of something received, which is
 * in the cache only then. Without that a processor runs ahead, stamps, and waits for the bytes
 * later: at 1 KiB between two processes that hid 190 ns. Thread: any. */
static inline uint64_t plx_tsc_after_loads(void)
{
#if defined(__x86_64__)
	__builtin_ia32_lfence();
#elif defined(__aarch64__)
	__asm__ volatile("dsb ld\n\tisb" : : : "memory");
#endif
	return plx_tsc();
}

/** Private. */
__extension__ typedef unsigned __int128 plx_uint128;

/** Counts of plx_tsc() in nanoseconds: of a difference. Needs plx_clock_init. */
static inline uint64_t plx_tsc_to_ns(uint64_t count)
{
	return PLX_CAST(uint64_t, (PLX_CAST(plx_uint128, count) * plx_clock_scale.mult) >> 32);
}

/** The time at which plx_tsc() was that: what plx_now_ns() was. Needs plx_clock_init. */
static inline uint64_t plx_tsc_time_ns(uint64_t count)
{
	/* Relaxed: one word, which stands for itself. */
	return plx_tsc_to_ns(count) + plx_atomic_load(&plx_clock_scale.base_ns, PLX_RELAXED);
}

/** Nanoseconds since an origin that is fixed for this boot. May jump back by up to 10 ms if the
 * counter steps, and by more until plx_clock_look corrects that: use plx_time_since for
 * differences. Needs plx_clock_init. Thread: any. */
static inline uint64_t plx_now_ns(void)
{
	return plx_tsc_time_ns(plx_tsc());
}

/** From then_ns to now_ns; 0 if now_ns is the earlier one. */
static inline uint64_t plx_time_since(uint64_t then_ns, uint64_t now_ns)
{
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

/** delay_ns after time_ns; PLX_NEVER where the sum would be beyond it. */
static inline uint64_t plx_time_add(uint64_t time_ns, uint64_t delay_ns)
{
	return delay_ns < PLX_NEVER - time_ns ? time_ns + delay_ns : PLX_NEVER;
}

/** Defaults of everything that connects again automatically: the range of the first wait, that of
 * the longest, and that of a wait after a process of the same host refused the connection. There no
 * network has to be spared, and whatever restarts is back soon. */
#define PLX_RECONNECT_MIN_NS       (10 * PLX_NS_PER_MS)
#define PLX_RECONNECT_MAX_NS       PLX_NS_PER_S
#define PLX_RECONNECT_SAME_HOST_NS (50 * PLX_NS_PER_MS)

/** How long to wait before the next attempt at something that others may be trying, too. */
struct plx_backoff {
	uint64_t min_ns, max_ns;
	uint64_t random;
	unsigned attempts; /**< in a row */
};

/** seed: another one for each that may fail together. Thread: owner, as of the others. */
void plx_backoff_init(struct plx_backoff *backoff, uint64_t min_ns, uint64_t max_ns, uint64_t seed);

/** Exponential with full jitter: at random from 0 to min_ns * 2^attempts, max_ns at most, so that
 * many that lost the same peer do not come back together. Brooker, "Exponential Backoff And Jitter"
 * (2015). Counts an attempt. */
uint64_t plx_backoff_next_ns(struct plx_backoff *backoff);

/** The same after a process of this host refused: PLX_RECONNECT_SAME_HOST_NS at most, or min_ns if
 * that is more. The range of later waits does not grow beyond that. */
uint64_t plx_backoff_next_same_host_ns(struct plx_backoff *backoff);

/** One has succeeded. */
void plx_backoff_reset(struct plx_backoff *backoff);

/** Tell the CPU that this is a spin-wait loop. */
static inline void plx_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* The calling lcore ------------------------------------------------------------------------ */

/** Lcore ids are 0 to PLX_LCORE_MAX - 1. */
#define PLX_LCORE_MAX  256
#define PLX_LCORE_NONE PLX_NONE

/** The id of the calling lcore, or PLX_LCORE_NONE on any other thread. Set by lib/lcore alone.
 * It lives here so that pools and counters can find "my own" without knowing of lcores. */
extern __thread uint32_t plx_lcore_id_tls PLX_INITIAL_EXEC;

/** The id of the calling lcore, or PLX_LCORE_NONE. Lcore ids are Pollux's own numbers; the CPU that
 * an lcore runs on may have another. Thread: any. */
static inline uint32_t plx_lcore_id(void)
{
	return plx_lcore_id_tls;
}

PLX_END_DECLS

#endif
