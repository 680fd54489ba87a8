/* SPDX-License-Identifier: BSD-3-Clause */
/* Any text, as a core list and as a core mask. No crash; every error text names the option; valid
 * input survives formatting and parsing again; and the advice in errors is valid. */
#include "fuzz.h"
#include "plx_topo.h"

static struct plx_topo *topo;

typedef int (*parse_fn)(const char *option, const char *text, struct plx_lcore_map *map_out);

static int parse_list(const char *option, const char *text, struct plx_lcore_map *map_out)
{
	return plx_lcore_map_parse_list(option, text, topo, map_out);
}
static char written[1 << 22];

static bool same_map(const struct plx_lcore_map *a, const struct plx_lcore_map *b)
{
	if (a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++) {
		if (a->places[i].lcore_id != b->places[i].lcore_id ||
		    !plx_cpuset_equal(&a->places[i].cpus, &b->places[i].cpus))
			return false;
	}
	return true;
}

static void require_sound(const struct plx_lcore_map *map)
{
	must(map->count >= 1 && map->count <= PLX_LCORE_MAX);
	for (uint32_t i = 0; i < map->count; i++) {
		must(map->places[i].lcore_id < PLX_LCORE_MAX);
		must(plx_cpuset_count(&map->places[i].cpus) >= 1);
		must(i == 0 || map->places[i - 1].lcore_id < map->places[i].lcore_id);
	}
}

static void require_writable(const struct plx_lcore_map *map)
{
	struct plx_lcore_map again;
	char small[16];

	plx_lcore_map_format(map, written, sizeof(written));
	must(parse_list("-l", written, &again) == 0);
	must(same_map(map, &again));
	plx_lcore_map_fini(&again);

	/* Truncated, it must not parse to another map. */
	if (strlen(plx_lcore_map_format(map, small, sizeof(small))) < strlen(written))
		must(parse_list("-l", small, &again) == -EINVAL);
}

/* Extract "give -l LIST" from the error, without the shell quotes. */
static void require_advice(void)
{
	const char *give = strstr(plx_error(), "; give ");
	struct plx_lcore_map map;
	char advice[256];

	must(give);
	must(sscanf(give, "; give -l %255s", advice) == 1);
	char *text = advice + strspn(advice, "'");

	text[strcspn(text, "'")] = '\0';
	must(parse_list("-l", text, &map) == 0);
	must(plx_lcore_map_check("-l", text, topo, &map) == 0);
	plx_lcore_map_fini(&map);
}

static void run(parse_fn parse, const char *text)
{
	struct plx_lcore_map map = {0};
	int rc = parse("-l", text, &map);

	if (rc) {
		must(rc == -EINVAL);
		must(strncmp(plx_error(), "-l ", 3) == 0);
		must(strstr(plx_error(), ": column "));
		return;
	}
	require_sound(&map);
	require_writable(&map);
	rc = plx_lcore_map_check("-l", text, topo, &map);
	must(rc == 0 || rc == -EINVAL);
	if (rc)
		require_advice();
	plx_lcore_map_fini(&map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!topo)
		must(plx_topo_open("synthetic:numa:2 core:4 pu:1", &topo) == 0);
	must(text);
	memcpy(text, data, size);
	text[size] = '\0';
	run(parse_list, text);
	run(plx_lcore_map_parse_mask, text);
	free(text);
	return 0;
}
