/* SPDX-License-Identifier: BSD-3-Clause */
/* With no_libibverbs.c in place of rdma_verbs.c. */
#include "plx_test.h"
#include "plx_topo.h"

PLX_TEST(a_device_is_not_opened_and_the_text_says_how_to_get_libibverbs)
{
	struct plx_rdma_device device = {.name = "mlx5_0", .uverbs = "uverbs0"};
	struct plx_rdma_details details;

	assert_fails(plx_rdma_probe(&device, &details), -EOPNOTSUPP,
		     "RDMA device mlx5_0: this build of Pollux cannot open it, because libibverbs "
		     "was missing; install libibverbs-dev (Debian) or rdma-core-devel (Fedora)");
}

PLX_TEST_MAIN()
