/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a program with one system call forbidden, like a container's seccomp profile: forbid
 * memfd_create|fstatfs PROGRAM WORDS... It exits with 77 if that is not possible. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int forbid(unsigned number)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	if (forbid(strcmp(argv[1], "fstatfs") == 0 ? SYS_fstatfs : SYS_memfd_create)) {
		perror("forbid");
		return 77;
	}
	execv(argv[2], argv + 2);
	perror(argv[2]);
	return 2;
}
