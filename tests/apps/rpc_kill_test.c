/* SPDX-License-Identifier: BSD-3-Clause */
/* Two services are killed and stopped at random points. What they ran, and how each call of their
 * client ended, are noted in shared memory and must agree: a key ran once at most, what was
 * answered ran, what surely did not run did not, and each call ended once. */
#include "plx_test.h"

#include "plx_eal.h"
#include "plx_rpc.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define SERVICES    2
#define CALLS       1000000
#define METHOD      1
#define A_TURN      4 /* calls made per ms */
#define DEADLINE_NS (400 * PLX_NS_PER_MS)

struct fate {
	_Atomic uint8_t ran;
	uint8_t ended, status;
	bool may_have_run;
};

static struct shared {
	char addresses[SERVICES][PLX_ADDRESS_MAX];
	_Atomic unsigned up_count;
	uint64_t made;
	struct fate fates[CALLS];
} *shared;

static struct plx_eal_conf conf = {.huge = PLX_HUGE_NONE};

/* Of ten calls: with a key, and retried if the link ends; with one of these; with neither. */
static bool has_key(uint64_t number)
{
	return number % 10 < 7;
}

static bool is_retried(uint64_t number)
{
	return number % 10 < 5 || number % 10 == 9;
}

/* In children. */
static void be_up(void)
{
	assert_works(plx_eal_init(&conf));
	plx_stop_on_signals();
}

/* A request carries its number, which is the reply. One in three is held until the next such one.
 */
static void on_request(struct plx_rpc_request *request, const void *data, uint32_t length,
		       void *arg)
{
	static struct plx_rpc_request *held;
	static uint64_t held_number;
	struct plx_rpc_request *due = request;
	uint64_t number, due_number;

	assert_int_equal(length, sizeof(number));
	memcpy(&number, data, sizeof(number));
	atomic_fetch_add(&shared->fates[number].ran, 1);
	due_number = number;
	if (number % 3 == 0) {
		due = held;
		due_number = held_number;
		held = request;
		held_number = number;
	}
	if (due)
		plx_rpc_reply(due, &due_number, sizeof(due_number));
}

static void serve(char *address)
{
	struct plx_rpc_method method = {.id = METHOD, .name = "run", .handler = on_request};
	struct plx_rpc_service *service;

	be_up();
	assert_works(plx_rpc_service_create(NULL, &service));
	assert_works(plx_rpc_service_add(service, &method));
	assert_works(plx_rpc_service_listen(service, *address ? address : "127.0.0.1:0", NULL));
	strcpy(address, plx_rpc_service_address(service, 0));
	atomic_fetch_add(&shared->up_count, 1);
	plx_loop_run();
}

/* The client ----------------------------------------------------------------------------------- */

static struct plx_rpc_client *client;
static uint64_t open_calls;

static void on_done(const struct plx_rpc_result *result, void *arg)
{
	uint64_t number = (uintptr_t)arg;
	struct fate *fate = &shared->fates[number];

	open_calls--;
	fate->ended++;
	fate->status = (uint8_t)result->status;
	fate->may_have_run = result->may_have_run;
	if (result->status == PLX_RPC_OK)
		assert_memory_equal(result->data, &number, sizeof(number));
}

static void on_turn(struct plx_timer *timer, void *arg)
{
	for (int i = 0; i < A_TURN && shared->made < CALLS; i++) {
		uint64_t number = shared->made;
		struct plx_rpc_call call = {
			.method = METHOD,
			.deadline_ns = DEADLINE_NS,
			.done = on_done,
			.arg = (void *)(uintptr_t)number,
			.key = has_key(number) ? number + 1 : 0,
			.retry = is_retried(number),
		};
		plx_rpc_call_id id;

		if (plx_rpc_call_start(client, &call, &number, sizeof(number), &id) != 0)
			return;
		shared->made++;
		open_calls++;
		if (number % 101 == 0)
			plx_rpc_cancel(client, id);
	}
}

static void call(char *unused)
{
	const char *addresses[] = {shared->addresses[0], shared->addresses[1], NULL};
	struct plx_timer turn;

	be_up();
	assert_works(plx_rpc_client_create(addresses, NULL, &client));
	plx_timer_init(&turn, on_turn, NULL);
	plx_timer_start_periodic(&turn, PLX_NS_PER_MS);
	plx_loop_run();
	plx_timer_stop(&turn);
	wait_doing(open_calls == 0, plx_loop_turn());
}

/* Their parent, which is no lcore -------------------------------------------------------------- */

static pid_t spawn(void (*body)(char *), char *arg)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	body(arg);
	_exit(0);
}

static pid_t start_service(unsigned i)
{
	unsigned before = atomic_load(&shared->up_count);
	pid_t pid = spawn(serve, shared->addresses[i]);

	wait_until(atomic_load(&shared->up_count) > before);
	return pid;
}

/* Return: its status. */
static int end(pid_t pid, int number)
{
	int status = -1;

	kill(pid, number);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void check_fates(void)
{
	unsigned answered = 0, lost = 0;

	for (uint64_t i = 0; i < shared->made; i++) {
		const struct fate *fate = &shared->fates[i];
		bool is_answered = fate->status == PLX_RPC_OK;

		assert_int_equal(fate->ended, 1);
		assert_true(fate->ran <= 1 || !has_key(i));
		assert_true(fate->ran || !is_answered);
		assert_true(!fate->ran || fate->may_have_run || is_answered);
		answered += is_answered;
		lost += fate->status == PLX_RPC_PEER_DOWN && fate->may_have_run;
	}
	print_message("%u of %lu were answered, %u lost\n", answered, shared->made, lost);
	assert_true(answered > 1000 && lost > 0);
}

/* A service is killed and started again, or stopped for longer than its client waits for it. */
static void kill_some(const char *provider)
{
	time_t until = time(NULL) + (getenv("PLX_TEST_SOAK") ? 120 : 8);
	pid_t services[SERVICES], caller;

	conf.provider = provider;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	for (unsigned i = 0; i < SERVICES; i++)
		services[i] = start_service(i);
	caller = spawn(call, NULL);
	while (time(NULL) < until) {
		unsigned which = (unsigned)rand() % SERVICES;

		usleep((unsigned)rand() % 300000);
		if (rand() % 4) {
			end(services[which], SIGKILL);
			services[which] = start_service(which);
		} else {
			kill(services[which], SIGSTOP);
			usleep(700000);
			kill(services[which], SIGCONT);
		}
	}
	assert_int_equal(end(caller, SIGTERM), 0);
	for (unsigned i = 0; i < SERVICES; i++)
		end(services[i], SIGKILL);
	check_fates();
	munmap(shared, sizeof(*shared));
}

PLX_TEST(calls_over_tcp_end_once_whatever_dies)
{
	kill_some("tcp");
}

PLX_TEST(calls_over_shm_end_once_whatever_dies)
{
	kill_some("shm");
}

PLX_TEST_MAIN()
