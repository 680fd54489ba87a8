/* SPDX-License-Identifier: BSD-3-Clause */
/* Small files and control groups of fake hosts: files below a temporary folder. */
#include "base_internal.h"
#include "folder.h"

static char root[FOLDER_BYTES];

PLX_FIXTURE(make_root, 0, folder_make(root))
PLX_FIXTURE(remove_root, folder_remove(root))

#define MADE_UP(name) PLX_TEST_WITH(name, make_root, remove_root)

MADE_UP(a_file_is_read_without_its_last_white_space)
{
	char text[6];

	folder_put(root, "/one", " a b \n\n");
	assert_true(plx_read_file(text, sizeof(text), "%s/%s", root, "one"));
	assert_string_equal(text, " a b");
	folder_put(root, "/long", "abcdefgh");
	assert_true(plx_read_file(text, sizeof(text), "%s/long", root));
	assert_string_equal(text, "abcde");
	folder_put(root, "/blank", "\n");
	assert_false(plx_read_file(text, sizeof(text), "%s/blank", root));
	assert_string_equal(text, "");
	assert_false(plx_read_file(text, sizeof(text), "%s/none", root));
	assert_string_equal(text, "");
}

static void list(void *arg, const char *folder, bool is_v2)
{
	char item[128];

	snprintf(item, sizeof(item), "%s%s", folder, is_v2 ? " v2" : "");
	plx_list_add(arg, 512, item);
}

MADE_UP(the_groups_of_a_controller_are_visited_up_to_the_root)
{
	static const struct {
		const char *groups, *visited;
	} cases[] = {
		{"0::/a/b\n", "/sys/fs/cgroup/a/b v2, /sys/fs/cgroup/a v2, /sys/fs/cgroup v2"},
		{"0::/\n", "/sys/fs/cgroup v2"},
		{"4:cpuset:/x\n3:cpuacct,cpu:/a:b\n1:name=systemd:/\n",
		 "/sys/fs/cgroup/cpu/a:b, /sys/fs/cgroup/cpu"},
		{"3:cpu:/\n0::/s\n", "/sys/fs/cgroup/cpu, /sys/fs/cgroup/s v2, /sys/fs/cgroup v2"},
		{"cpu\n3:cpu\n3:cpu:\n3:cpu:a\n:::\n\n", ""},
	};

	for (size_t i = 0; i < PLX_ARRAY_LEN(cases); i++) {
		char visited[512] = "";

		folder_put(root, "/proc/self/cgroup", cases[i].groups);
		plx_cgroup_visit(root, "cpu", list, visited);
		assert_string_equal(visited, cases[i].visited);
	}
}

MADE_UP(a_controller_is_found_behind_a_dozen_long_paths)
{
	char groups[16384] = "", visited[512] = "";
	struct plx_text text = {.out = groups, .size = sizeof(groups)};

	for (int i = 12; i > 0; i--)
		plx_text_add(&text, "%d:other%d:/%01000d\n", i + 1, i, i);
	plx_text_add(&text, "1:cpu:/mine\n");
	folder_put(root, "/proc/self/cgroup", groups);
	plx_cgroup_visit(root, "cpu", list, visited);
	assert_string_equal(visited, "/sys/fs/cgroup/cpu/mine, /sys/fs/cgroup/cpu");
}

PLX_TEST_MAIN()
