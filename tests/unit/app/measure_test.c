/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of measuring programs. */
#include "plx_test.h"

#include "app.h"

PLX_TEST(conflicting_options_are_refused)
{
	static const struct {
		struct plx_measure measure;
		const char *error; /* NULL: valid */
	} rows[] = {
		{{0}, NULL},
		{{.arrival = PLX_ARRIVAL_BURST, .rate = 100000, .count = 1}, NULL},
		{{.arrival = PLX_ARRIVAL_BURST, .rate = 100001, .count = 1},
		 "give --rate up to that"},
		{{.arrival = PLX_ARRIVAL_POISSON, .rate = 1000000000, .duration_ns = 1}, NULL},
		{{.arrival_given = true}, "give --rate R too"},
		{{.seed_given = true}, "give --rate R too"},
		{{.arrival_given = true, .seed_given = true, .rate = 1, .count = 1}, NULL},
		{{.count = 1, .count_given = true, .duration_ns = 1, .duration_given = true},
		 "--count and --duration exclude each other"},
		{{.rate = 1}, "--rate is for measuring; give --count or --duration"},
		{{.out_dir = "/tmp", .name = "x"}, "--out is for measuring; give --count"},
		{{.out_dir = "/tmp", .name = "a/b", .count = 1}, "give one without '/'"},
		{{.out_dir = "/dev/null/x", .name = "x", .count = 1}, NULL}, /* the run fails */
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		int rc = plx_measure_check(&rows[i].measure);

		assert_int_equal(rc, rows[i].error ? -EINVAL : 0);
		if (rc)
			assert_error_has(rows[i].error);
	}
}

PLX_TEST_MAIN()
