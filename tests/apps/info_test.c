/* SPDX-License-Identifier: BSD-3-Clause */
/* plx-info on fake hosts. */
#include "info_fixture.h"

int main(void)
{
	return info_gather_tests() + info_claims_tests() + info_doctor_tests() + info_show_tests();
}
