/* SPDX-License-Identifier: BSD-3-Clause */
/* Options that conflict or would have no effect. */
#include "plx_test.h"

#include "params.h"

#define HERE      .service = "127.0.0.1:1"
#define MAKE      HERE, .define = "a", .type_given = true, .type = PARAM_INT - 1
#define LONG_UNIT "12345678901234567890123456789012"

PLX_TEST(other_combinations_are_refused)
{
	static char long_text[PARAM_TEXT_MAX + 2];
	struct {
		struct params_conf conf;
		const char *error;
	} rows[] = {
		{{.serve = "f"}, "--listen ADDR is missing"},
		{{.serve = "f", .listen = "a:0", .get = "a"}, "leave them out"},
		{{.serve = "f", .listen = "a:0", HERE}, "leave them out"},
		{{.serve = "f", .listen = "a:0", .limits = {"1"}}, "are for --define"},
		{{.get = "a"}, "--connect ADDR is missing"},
		{{HERE}, "give one of --get"},
		{{HERE, .get = "a", .list = true}, "give one of --get"},
		{{HERE, .get = "a", .fast = true}, "--fast is for --set"},
		{{HERE, .get = "a", .listen = "1.2.3.4:5"}, "--listen is for --serve"},
		{{HERE, .get = "a", .value = "1"}, "--value is for --set"},
		{{HERE, .get = "a", .below = "b"}, "--below is for --list"},
		{{HERE, .get = "a", .expect_given = true}, "--expect is for --set"},
		{{HERE, .set = "a", .value = "1", .unit = "m"}, "are for --define"},
		{{HERE, .set = "a"}, "--value VALUE is missing"},
		{{HERE, .set = "a", .value = long_text}, "--value: 1001 bytes"},
		{{HERE, .set = "a//b", .value = "1"}, "--set a//b: a name has an empty segment"},
		{{HERE, .define = "a", .value = "1"}, "--type is missing"},
		{{MAKE, .value = "1.5"}, "--value '1.5': not an int"},
		{{MAKE, .value = "1", .unit = LONG_UNIT}, "--unit " LONG_UNIT ": give up to 31"},
		{{MAKE, .value = "1", .limits = {"3", "2"}}, "--define a: a lower limit is above"},
		{{MAKE, .value = "1", .limits = {[LIMIT_MAX] = "10", [LIMIT_ALARM_HIGH] = "20"}},
		 "--define a: the high alarm is not below the maximum"},
		{{MAKE, .value = "1", .limits = {"3"}}, "--value: 1 is below 3, the least"},
	};

	memset(long_text, 'x', PARAM_TEXT_MAX + 1);
	for (unsigned i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		if (params_check(&rows[i].conf) != -EINVAL)
			fail_msg("%u was taken: %s", i, rows[i].error);
		assert_error_has(rows[i].error);
	}
}

PLX_TEST_MAIN()
