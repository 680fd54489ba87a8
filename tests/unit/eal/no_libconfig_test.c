/* SPDX-License-Identifier: BSD-3-Clause */
/* With no_libconfig.c instead of conf_file.c. */
#include "plx_eal.h"
#include "plx_test.h"

PLX_TEST(a_file_is_refused_with_a_hint_at_libconfig)
{
	const char *argv[] = {"program", "--config", "a.conf", NULL};
	struct plx_eal_conf conf = {0};

	assert_int_equal(plx_eal_parse(3, (char **)argv, &conf), 2);
	assert_fails(plx_eal_init(&conf), -EOPNOTSUPP,
		     "--config a.conf: this build of Pollux reads no configuration files, because "
		     "libconfig was missing; give the options on the command line, or install "
		     "libconfig-dev (Debian) or libconfig-devel (Fedora)");
	plx_eal_conf_fini(&conf);
}

PLX_TEST_MAIN()
