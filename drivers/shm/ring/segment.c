/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory shared with a peer, made of ordinary pages. A peer can punch holes in huge pages even in a
 * sealed memfd; the next access would raise SIGBUS when none are left. */
#include "../shm.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

#define PAGE_BYTES      4096
#define POPULATED_BYTES (SEGMENT_CONTROL_BYTES + 4 * PAGE_BYTES)

/* A peer that can change the size could make us touch missing pages. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int create_memfd(const char *name)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);

	return fd < 0 && errno == EINVAL ? memfd_create(name, flags) : fd;
}

/* Place pages on the node of the receiver, which calls this, whichever side touches them first. If
 * the node has no memory, they go elsewhere. */
static void place_here(void *base, size_t bytes)
{
	unsigned cpu, node;
	unsigned long nodes[16] = {0};

	if (syscall(SYS_getcpu, &cpu, &node, NULL) || node >= sizeof(nodes) * 8)
		return;
	nodes[node / (8 * sizeof(*nodes))] |= 1UL << node % (8 * sizeof(*nodes));
	syscall(SYS_mbind, base, bytes, MPOL_PREFERRED, nodes, sizeof(nodes) * 8, 0);
}

/* The pages of a memfd are charged when touched. If the system does not overcommit memory, a touch
 * may fail with SIGBUS, so all pages are allocated now. */
bool segment_takes_all;

void segment_look_at_overcommit(void)
{
	int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
	char mode = '0';

	segment_takes_all = fd >= 0 && read(fd, &mode, 1) == 1 && mode == '2';
	if (fd >= 0)
		close(fd);
}

static bool take_all(int fd, size_t bytes)
{
	while (fallocate(fd, 0, 0, (off_t)bytes)) {
		if (errno != EINTR)
			return false;
	}
	return true;
}

/* The first pages are populated here, so that the first messages cause no page faults. The rest are
 * populated on use, so an idle connection takes little memory. */
static void *map(int fd, size_t bytes, bool is_receiver)
{
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	size_t first = bytes < POPULATED_BYTES ? bytes : POPULATED_BYTES;
	int err;

	if (base == MAP_FAILED)
		return NULL;
	plx_dump_mark(base, bytes);
	if (is_receiver)
		place_here(base, bytes);
	/* EINVAL: Linux before 5.14. */
	if ((is_receiver && segment_takes_all && !take_all(fd, bytes)) ||
	    (madvise(base, first, MADV_POPULATE_WRITE) && errno != EINVAL)) {
		err = errno;
		munmap(base, bytes);
		errno = err;
		return NULL;
	}
	return base;
}

static int create(const char *name, size_t bytes, void **base_out, int *fd_out)
{
	int fd = create_memfd(name);
	int rc = fd < 0 ? -errno : plx_file_resize(fd, bytes);
	void *base = NULL;

	if (rc == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		base = map(fd, bytes, true);
	if (!base) {
		rc = rc ? rc : -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	*base_out = base;
	*fd_out = fd;
	return 0;
}

/* Return: what is wrong with it, or NULL. */
static const char *check(int fd, size_t bytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	if (seals < 0)
		return "is not a memfd";
	if ((seals & SEALS) != SEALS)
		return "may change its size";
	if (fstatfs(fd, &fs) || fs.f_type != TMPFS_MAGIC)
		return "is not of ordinary pages";
	if (fstat(fd, &st) || st.st_size != (off_t)bytes)
		return "has another size than was said";
	return NULL;
}

static int map_checked(int fd, size_t bytes, void **base_out)
{
	const char *wrong = check(fd, bytes);

	if (wrong) {
		shm_log(FI_LOG_WARN, "memory of a peer is refused: it %s", wrong);
		return -FI_EINVAL;
	}
	*base_out = map(fd, bytes, false);
	if (*base_out)
		return 0;
	int err = errno;
	shm_log(FI_LOG_WARN, "memory of a peer cannot be mapped: %s", strerror(err));
	return err == ENOMEM ? -FI_ENOMEM : -FI_EINVAL;
}

bool segment_try(void)
{
	void *base = NULL;
	int fd = -1, rc = create("plx_shm try", PAGE_BYTES, &base, &fd);
	const char *wrong;

	if (rc || fd < 0) {
		shm_log(FI_LOG_WARN, "memory cannot be shared: %s", strerror(-rc));
		return false;
	}
	wrong = check(fd, PAGE_BYTES);
	if (wrong)
		shm_log(FI_LOG_WARN, "memory of this process would be refused: it %s", wrong);
	munmap(base, PAGE_BYTES);
	close(fd);
	return !wrong;
}

static size_t segment_bytes(uint32_t ring_bytes)
{
	return SEGMENT_CONTROL_BYTES + (size_t)ring_bytes;
}

static struct segment segment_at(void *base, uint32_t ring_bytes)
{
	uint8_t *ring = (uint8_t *)base + SEGMENT_CONTROL_BYTES;

	return (struct segment){.control = base, .ring = ring, .ring_bytes = ring_bytes};
}

int segment_create(uint32_t ring_bytes, struct segment *segment_out, int *fd_out)
{
	void *base = NULL;
	int rc = create("plx_shm ring", segment_bytes(ring_bytes), &base, fd_out);

	if (rc == 0)
		*segment_out = segment_at(base, ring_bytes);
	return rc;
}

int segment_map(int fd, uint32_t ring_bytes, struct segment *segment_out)
{
	void *base = NULL;
	int rc;

	if (ring_bytes < SEGMENT_RING_BYTES_MIN || ring_bytes > SEGMENT_RING_BYTES_MAX ||
	    ring_bytes & (ring_bytes - 1)) {
		shm_log(FI_LOG_WARN, "a ring of %u bytes is refused: a power of two from %u to %u",
			ring_bytes, SEGMENT_RING_BYTES_MIN, SEGMENT_RING_BYTES_MAX);
		return -FI_EINVAL;
	}
	rc = map_checked(fd, segment_bytes(ring_bytes), &base);
	if (rc == 0)
		*segment_out = segment_at(base, ring_bytes);
	return rc;
}

void segment_unmap(struct segment *segment)
{
	if (segment->control)
		munmap(segment->control, segment_bytes(segment->ring_bytes));
	*segment = (struct segment){0};
}

int bell_create(struct bell **bell_out, int *fd_out)
{
	void *base = NULL;
	/* A listener without room for rings must not be found, because connectors that find it try
	 * no other provider. */
	int rc = plx_file_fits(segment_bytes(shm_params.ring_bytes));

	if (rc)
		shm_log(FI_LOG_WARN, "cannot accept connections: for a ring, %s", plx_error());
	else
		rc = create("plx_shm bell", BELL_BYTES, &base, fd_out);

	if (rc == 0)
		*bell_out = base;
	return rc;
}

void bell_unmap(struct bell *bell)
{
	if (bell)
		munmap(bell, BELL_BYTES);
}

/* Bells of peers ------------------------------------------------------------------------------- */

/* Every connection of a queue passes the same bell, which is mapped once. */
struct peer_bell {
	LIST_ENTRY(peer_bell) link;
	dev_t device;
	ino_t inode;
	struct bell *bell;
	uint32_t refs;
};

static pthread_mutex_t peer_bells_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(peer_bells, peer_bell) peer_bells;

/* A connection works without memory for the entry too: it gets a private mapping. */
static int map_peer_bell(int fd, const struct stat *st, struct bell **bell_out)
{
	struct peer_bell *made;
	void *base = NULL;
	int rc = map_checked(fd, BELL_BYTES, &base);

	*bell_out = base;
	made = rc ? NULL : malloc(sizeof(*made));
	if (!made)
		return rc;
	*made = (struct peer_bell){
		.device = st->st_dev, .inode = st->st_ino, .bell = base, .refs = 1};
	LIST_INSERT_HEAD(&peer_bells, made, link);
	return 0;
}

int peer_bell_map(int fd, struct bell **bell_out)
{
	struct peer_bell *each;
	struct stat st;
	int rc = 0;

	if (fstat(fd, &st))
		return -FI_EINVAL;
	pthread_mutex_lock(&peer_bells_lock);
	LIST_FOREACH (each, &peer_bells, link) {
		if (each->inode == st.st_ino && each->device == st.st_dev)
			break;
	}
	if (each) {
		each->refs++;
		*bell_out = each->bell;
	} else {
		rc = map_peer_bell(fd, &st, bell_out);
	}
	pthread_mutex_unlock(&peer_bells_lock);
	return rc;
}

void peer_bell_release(struct bell *mapped)
{
	struct peer_bell *each;

	pthread_mutex_lock(&peer_bells_lock);
	LIST_FOREACH (each, &peer_bells, link) {
		if (each->bell == mapped)
			break;
	}
	if (!each || --each->refs == 0)
		bell_unmap(mapped);
	if (each && each->refs == 0) {
		LIST_REMOVE(each, link);
		free(each);
	}
	pthread_mutex_unlock(&peer_bells_lock);
}
