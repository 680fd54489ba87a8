/* SPDX-License-Identifier: BSD-3-Clause */
/* With no_libibverbs.c instead of libibverbs.c. */
#include "info.h"
#include "plx_test.h"

PLX_TEST(a_build_without_libibverbs_names_the_package)
{
	struct plx_rdma_device device = {.name = "mlx5_0", .uverbs = "uverbs0"};
	struct info_details details;

	assert_fails(info_probe_device(&device, &details), -EOPNOTSUPP,
		     "RDMA device mlx5_0: this build of Pollux cannot open it, because libibverbs "
		     "was missing; install libibverbs-dev (Debian) or rdma-core-devel (Fedora)");
}

PLX_TEST_MAIN()
