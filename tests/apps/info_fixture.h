/* SPDX-License-Identifier: BSD-3-Clause */
/* Fake hosts: files below a temporary folder, and a host that needs no changes. */
#ifndef APPS_INFO_FIXTURE_H
#define APPS_INFO_FIXTURE_H

#include "folder.h"
#include "json_has.h"

#include "info.h"

/** The folder that stands for "/" during a MADE_UP_TEST. */
extern char root[FOLDER_BYTES];

int make_root(void **state);
int remove_root(void **state);

#define MADE_UP_TEST(name) PLX_TEST_WITH(name, make_root, remove_root)

/** Write a file below the root, creating its folders. name: "/proc/stat". */
void put(const char *name, const char *text);

/** What is known about the host; garbage at the start of a MADE_UP_TEST. */
extern struct info *const info;

/** Make it a host that needs no changes: each test adds one defect. */
void sound_host(void);

/** The same with one RDMA device, mlx5_0, on node 0. */
void sound_rdma_host(void);

/** Remove the defects again. */
void restore_host(void);

/** The output of info_print_json, parsed. */
json_t *as_json(void);

/** Fail unless the JSON of the host contains that: see assert_json_has. */
#define ASSERT_JSON(...)                            \
	do {                                        \
		json_t *json = as_json();           \
		assert_json_has(json, __VA_ARGS__); \
		json_decref(json);                  \
	} while (0)

#endif
