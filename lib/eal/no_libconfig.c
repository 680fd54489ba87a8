/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces conf_file.c if Pollux was built without libconfig. */
#include "eal_priv.h"

int plx_eal_conf_file(struct plx_eal_conf *conf)
{
	if (!conf->config)
		return 0;
	return plx_fail(
		EOPNOTSUPP,
		"%s %s: this build of Pollux reads no configuration files, because "
		"libconfig was missing; give the options on the command line, or install "
		"libconfig-dev (Debian) or libconfig-devel (Fedora), and build Pollux again",
		eal_conf_origin(conf, OPT_CONFIG), conf->config);
}
