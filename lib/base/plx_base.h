/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Foundation of all libraries: compile-time helpers, error texts, the log, the TSC clock, and the
 * id of the calling lcore. Depends on no other library.
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

/* A field that this library and its inline functions access atomically. Inline functions use
 * plx_atomic_load and plx_atomic_store with these orders, which C++ understands too. */
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

/* Attributes. PLX_CLEANUP: calls fn with the variable's address at the end of its scope. */
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

/* Prefetch the line of p, for reading or (write) exclusively. Never faults. gcc emits PREFETCHW
 * only if the target has it; every x86-64 processor accepts it, some older ones as a no-op (Intel
 * SDM, 2B). */
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

/* In structures named _attr or _conf, 0 or NULL is the default. In an id, such as of an lcore or
 * a node, 0 is the first one. Declarations that name one of these values mean: */
#define PLX_NEVER    UINT64_MAX /**< a time: never; also accepted by functions that wait */
#define PLX_NO_LIMIT UINT32_MAX /**< a maximum: no limit */
#define PLX_NONE     UINT32_MAX /**< an id, or something enabled by default: none */

PLX_BEGIN_DECLS

/** Version of the running library, "major.minor.patch". Thread: any. */
const char *plx_version(void);

/* Errors ----------------------------------------------------------------------------------- */

/** Text of this thread's last failed call into Pollux: what was given, what is allowed, what to
 * do. Valid until the next failing call on this thread; "" before the first. A successful call may
 * set it, too, for an attempt that failed.
 * Back-pressure is not a failure and leaves the text unchanged, so it is cheap: -EAGAIN from
 * sends, NULL from an empty pool, fewer elements from a ring. Do not read the text after those: it
 * belongs to an older call.
 * Thread: any. */
const char *plx_error(void);

/** Set this thread's error text and return -err, for `return plx_fail(...)`. err: a positive
 * errno.
 * Thread: any. */
int plx_fail(int err, const char *format, ...) PLX_PRINTF(2, 3);

/** Prepend text to this thread's error text, for a caller that passes an error up and knows more
 * of its origin, such as a file and line. Return: err, unchanged.
 * Thread: any. */
int plx_fail_in(int err, const char *format, ...) PLX_PRINTF(2, 3);

/* Log -------------------------------------------------------------------------------------- */

enum plx_log_level { PLX_LOG_ERROR, PLX_LOG_WARNING, PLX_LOG_NOTICE, PLX_LOG_INFO, PLX_LOG_DEBUG };

/** A component whose messages are filtered together. Define it with PLX_LOG_COMPONENT. */
struct plx_log_component {
	const char *name;
	enum plx_log_level level; /**< messages above it are dropped; initially PLX_LOG_NOTICE */
	struct plx_log_component *next;
};

/** Receives messages. line has no newline and is valid during the call. */
typedef void (*plx_log_sink)(enum plx_log_level level, const char *component, const char *line,
			     void *arg);

/** Send messages to sink; NULL turns the log off. Initially plx_log_to_stderr. The sink runs on
 * the thread that logs.
 * Thread: setup. */
void plx_log_set_sink(plx_log_sink sink, void *arg);

/** The default sink: writes lines "TIME component: level: text" to standard error with
 * plx_write_or_drop. TIME is UTC with milliseconds, "2026-11-26T04:30:16.123Z" (ISO 8601).
 * Thread: any. */
void plx_log_to_stderr(enum plx_log_level level, const char *component, const char *line,
		       void *arg);

/** Apply "[component:]level": error, warning, notice, info, debug or 0 to 4. option: the name the
 * user gave, for the error text.
 * Thread: setup.
 * Return: 0; -EINVAL unknown level or component (the error text lists them). */
int plx_log_configure(const char *option, const char *text);

/** Register a component for plx_log_configure. PLX_LOG_COMPONENT calls it before main. */
void plx_log_register(struct plx_log_component *component);

/** Format and send one message. Use plx_log, which filters first. Thread: any. */
void plx_log_write(enum plx_log_level level, const struct plx_log_component *component,
		   const char *format, ...) PLX_PRINTF(3, 4);

#define plx_log(component, lvl, ...)                                    \
	do {                                                            \
		if ((lvl) <= (component)->level)                        \
			plx_log_write((lvl), (component), __VA_ARGS__); \
	} while (0)

/** Define a static component `variable` named `text` and register it at load time. */
#define PLX_LOG_COMPONENT(variable, text)                                          \
	static struct plx_log_component variable = {(text), PLX_LOG_NOTICE, NULL}; \
	PLX_CONSTRUCTOR static void variable##_register(void)                      \
	{                                                                          \
		plx_log_register(&variable);                                       \
	}                                                                          \
	struct plx_log_component /* takes the semicolon */

/** Limits messages that a peer can cause at any rate to `burst` per second. */
struct plx_log_limit {
	uint64_t second;     /**< the second that `used` counts */
	unsigned used;       /**< messages passed in that second */
	unsigned burst;      /**< messages per second; 0 means 10 */
	uint64_t suppressed; /**< messages dropped in total */
};

/** Whether one more message may pass now. Thread: owner of the limit. */
bool plx_log_allowed(struct plx_log_limit *limit, uint64_t now_ns);

/* Output ----------------------------------------------------------------------------------- */

/** write(2) without signals: -EPIPE without a reader and -EFBIG at the file size limit, whatever
 * the process does with SIGPIPE and SIGXFSZ. Costs four more system calls.
 * Thread: any.
 * Return: bytes; -errno. */
ssize_t plx_write(int fd, const void *data, size_t len);

/** Write text to a descriptor without waiting, or lose it: an lcore must not wait for a reader. No
 * signals, as plx_write.
 * Thread: any.
 * Return: 0; -EAGAIN slow reader, the rest is lost; -EPIPE no reader; another -errno of write(2).
 */
int plx_write_or_drop(int fd, const char *text, size_t len);

/** Open /dev/null for each closed descriptor of 0 to 2, so that no descriptor of Pollux gets such
 * a number and is used as standard output. Reads and writes of them still fail with EBADF.
 * plx_eal_init calls it.
 * Thread: setup. */
void plx_hold_stdio(void);

/* Random numbers --------------------------------------------------------------------------- */

/** Fill size bytes from getrandom(2), fit for keys. Aborts if the kernel has no random source, as
 * arc4random(3) does. A system call: for set-up.
 * Thread: any. */
void plx_random(void *out, size_t size);

/** An unpredictable random number; never 0. Thread: as plx_random. */
uint64_t plx_random_id(void);

/** Secret input of a hash. Random, so that peers cannot choose colliding inputs. */
struct plx_siphash_key {
	uint64_t k0, k1;
};

/** SipHash-2-4 of length bytes; 16 ns for 24 bytes. Without the key nobody can compute further
 * hashes, even from known ones. Aumasson and Bernstein, "SipHash: a fast short-input PRF"
 * (INDOCRYPT 2012).
 * Thread: any. */
uint64_t plx_siphash(const struct plx_siphash_key *key, const void *data, size_t length);

/* Untrusted text ------------------------------------------------------------------------------- */

#define PLX_PRINTABLE_BYTES 5 /**< one character and a NUL */

/** Escape the first character of untrusted text, so that it cannot control a terminal and is valid
 * in JSON. Printable ASCII, and UTF-8 from U+00A0 on, stay as they are. A backslash is doubled. Of
 * anything else one byte becomes a backslash, "x" and two digits.
 * length: available bytes, at least 1. plain: further ASCII characters that stay as they are, such
 * as a line feed.
 * Thread: any.
 * Return: bytes of text consumed, at least 1. */
size_t plx_printable_next(const void *text, size_t length, const char *plain,
			  char out[PLX_PRINTABLE_BYTES]);

/** Escape a whole string, cut after the last character that fits. Four bytes per byte of text plus
 * one are always enough.
 * Thread: any.
 * Return: out. */
const char *plx_printable(const char *text, char *out, size_t size);

/* Values --------------------------------------------------------------------------------------- */

/** Parse a whole number ("7"), a size in bytes ("64", "4K", "1M", "2G"), or a duration ("1.5s",
 * "20us", "5min", "1h", "1d"; seconds without a unit). max 0: no maximum. option: the name the user
 * gave, for the error text.
 * Thread: any.
 * Return: 0; -EINVAL, the error text says what is allowed. */
int plx_parse_uint(const char *option, const char *text, uint64_t min, uint64_t max,
		   uint64_t *value_out);
int plx_parse_size(const char *option, const char *text, uint64_t min, uint64_t max,
		   uint64_t *value_out);
int plx_parse_duration(const char *option, const char *text, uint64_t min_ns, uint64_t max_ns,
		       uint64_t *value_out);

/** A number with a key. */
struct plx_setting {
	const char *key;
	uint32_t *value;
	uint32_t least, most;
	const char *help;
};

/** Parse "KEY=VALUE,...". settings: the known ones, terminated by one without a key. check: set
 * nothing.
 * Thread: any.
 * Return: 0; -EINVAL, the error text says what is allowed; earlier settings may have been set. */
int plx_parse_settings(const char *option, const char *text, const struct plx_setting *settings,
		       bool check);

/* Clock ------------------------------------------------------------------------------------ */

/** Source and quality of the clock. */
struct plx_clock_info {
	const char *source;    /**< "tsc", "cntvct" or "clock_monotonic_raw" */
	const char *frequency; /**< source of its frequency: "measured", "cpuid", ... */
	double hz;             /**< counts per second */
	double residual_ppm;   /**< uncertainty of hz, in parts per million */
	bool invariant;        /**< same rate in every power state, and on all CPUs */
};

/** Calibrate the clock against CLOCK_MONOTONIC_RAW. Takes about 10 ms the first time, then
 * nothing. Every init function of Pollux calls it.
 * Thread: any. */
void plx_clock_init(void);

/** Properties of the clock. Calls plx_clock_init. Thread: any. */
const struct plx_clock_info *plx_clock_info_read(void);

/** Drift from CLOCK_MONOTONIC_RAW since plx_clock_init, in parts per million. More accurate the
 * longer the process runs.
 * Thread: any. */
double plx_clock_drift_ppm(void);

/** Compare the clock with CLOCK_MONOTONIC_RAW, which stops while the host is suspended. If they
 * differ by more than 10 ms since the last check, because the counter stepped when the host resumed
 * or a virtual machine moved, correct the clock, count that, and log a warning. Lcores call it. A
 * program that turns no loop may call it about ten times a second.
 * at_once: check even within 100 ms of the last check.
 * Thread: any. */
void plx_clock_look(bool at_once);

/** Number of corrections by plx_clock_look. Thread: any. */
uint64_t plx_clock_steps(void);

/** Time in ns that the host was suspended since plx_clock_init, as of the last check: time of
 * CLOCK_BOOTTIME that CLOCK_MONOTONIC does not count. Thread: any. */
uint64_t plx_clock_suspended_ns(void);

/** Private: ns = counts * mult / 2^32 + base_ns, modulo 2^64. mult is constant after
 * plx_clock_init; base_ns is the sum of corrections. In its own cache line, because every clock
 * read loads it. */
struct plx_clock_scale {
	uint64_t mult;
	PLX_ATOMIC(uint64_t) base_ns;
} PLX_ALIGNED_LINE;
extern struct plx_clock_scale plx_clock_scale;

/** The raw counter. Not ordered with surrounding instructions: fine for timestamps that are
 * microseconds apart. Thread: any. */
static inline uint64_t plx_tsc(void)
{
#if defined(__x86_64__)
	/* Builtins here and below, because including <x86intrin.h> takes most of the compile
	 * time. */
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

/** plx_tsc() after all earlier loads completed: the receive timestamp of data that was just read.
 * Otherwise the processor reads the counter first and waits for the bytes later, which hid 190 ns
 * at 1 KiB between two processes.
 * Thread: any. */
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

/** Convert a difference of plx_tsc() to ns. Needs plx_clock_init. */
static inline uint64_t plx_tsc_to_ns(uint64_t count)
{
	return PLX_CAST(uint64_t, (PLX_CAST(plx_uint128, count) * plx_clock_scale.mult) >> 32);
}

/** Convert a value of plx_tsc() to a time of plx_now_ns(). Needs plx_clock_init. */
static inline uint64_t plx_tsc_time_ns(uint64_t count)
{
	/* Relaxed: a single word, independent of other data. */
	return plx_tsc_to_ns(count) + plx_atomic_load(&plx_clock_scale.base_ns, PLX_RELAXED);
}

/** Nanoseconds since an origin that is fixed for this boot. Needs plx_clock_init. May jump back by
 * up to 10 ms if the counter steps, and by more until plx_clock_look corrects it: use
 * plx_time_since for differences.
 * Thread: any. */
static inline uint64_t plx_now_ns(void)
{
	return plx_tsc_time_ns(plx_tsc());
}

/** Time from then_ns to now_ns; 0 if now_ns is earlier. */
static inline uint64_t plx_time_since(uint64_t then_ns, uint64_t now_ns)
{
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

/** time_ns + delay_ns, at most PLX_NEVER. */
static inline uint64_t plx_time_add(uint64_t time_ns, uint64_t delay_ns)
{
	return delay_ns < PLX_NEVER - time_ns ? time_ns + delay_ns : PLX_NEVER;
}

/** Defaults for everything that reconnects automatically: bound of the first wait, of the longest
 * wait, and of a wait after a process on the same host refused. The last one is short: no network
 * is loaded, and a restarted process is soon back. */
#define PLX_RECONNECT_MIN_NS       (10 * PLX_NS_PER_MS)
#define PLX_RECONNECT_MAX_NS       PLX_NS_PER_S
#define PLX_RECONNECT_SAME_HOST_NS (50 * PLX_NS_PER_MS)

/** The time of a whole close, drain or shutdown that is given no other, whatever the peer does. */
#define PLX_CLOSE_NS (5 * PLX_NS_PER_S)

/** Waiting times between attempts, when others may be trying too. */
struct plx_backoff {
	uint64_t min_ns, max_ns;
	uint64_t random;
	unsigned attempts; /**< consecutive attempts */
};

/** Initialize. seed: different for each that may fail together. Thread: owner, also for the
 * functions below. */
void plx_backoff_init(struct plx_backoff *backoff, uint64_t min_ns, uint64_t max_ns, uint64_t seed);

/** Exponential back-off with full jitter: random from 0 to min_ns * 2^attempts, at most max_ns, so
 * that many clients of a failed peer do not reconnect together. Counts an attempt. Brooker,
 * "Exponential Backoff And Jitter" (2015).
 * Return: ns. */
uint64_t plx_backoff_next_ns(struct plx_backoff *backoff);

/** plx_backoff_next_ns after a process on this host refused: at most PLX_RECONNECT_SAME_HOST_NS,
 * or min_ns if larger. Later waits do not grow beyond that.
 * Return: ns. */
uint64_t plx_backoff_next_same_host_ns(struct plx_backoff *backoff);

/** Random from 0 to most_ns: jitter for those that are due together. Counts no attempt.
 * Return: ns. */
uint64_t plx_backoff_within_ns(struct plx_backoff *backoff, uint64_t most_ns);

/** An attempt succeeded. */
void plx_backoff_reset(struct plx_backoff *backoff);

/** Hint to the CPU in a spin-wait loop. */
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

/** The id of the calling lcore; PLX_LCORE_NONE on any other thread. Set by lib/lcore alone. Here,
 * so that pools and counters find their own part without depending on lib/lcore. */
extern __thread uint32_t plx_lcore_id_tls PLX_INITIAL_EXEC;

/** The id of the calling lcore; PLX_LCORE_NONE on any other thread. Lcore ids are Pollux's own and
 * may differ from CPU ids. Thread: any. */
static inline uint32_t plx_lcore_id(void)
{
	return plx_lcore_id_tls;
}

PLX_END_DECLS

#endif
