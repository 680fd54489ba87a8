/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares the matrix in doc/drivers.md with fi_getinfo and the drivers: each column whose provider
 * every host has; those of verbs in the guests of tests/rdma. */
#include "fixture.h"

#include <stdio.h>

#define COLUMNS_MAX 8
#define CELL_BYTES  64

/* The subject of a column. */
struct subject {
	const struct plx_fabric_driver *driver;
	const char *provider;
	struct fi_info *info;
};

/* Queries -------------------------------------------------------------------------------------- */

static struct fi_info *make_hints(const char *provider)
{
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT | FI_RX_CQ_DATA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(provider);
	return hints;
}

static struct fi_info *ask(const struct subject *subject, struct fi_info *hints)
{
	const char *host = getenv("PLX_TEST_HOST");
	struct fi_info *info = NULL;
	bool here = strcmp(subject->provider, "verbs") == 0;

	(subject->driver->getinfo ? subject->driver->getinfo : fi_getinfo)(
		FI_VERSION(1, 17), here ? host : NULL, here ? "0" : NULL, here ? FI_SOURCE : 0,
		hints, &info);
	fi_freeinfo(hints);
	return info;
}

static const char *whether(struct fi_info *info)
{
	if (info)
		fi_freeinfo(info);
	return info ? "yes" : "no";
}

static const char *has_caps(const struct subject *subject, uint64_t caps)
{
	struct fi_info *hints = make_hints(subject->provider);

	hints->caps |= caps;
	return whether(ask(subject, hints));
}

static void number(char *out, uint64_t value)
{
	snprintf(out, CELL_BYTES, "%llu", (unsigned long long)value);
}

static void text(char *out, const char *value)
{
	snprintf(out, CELL_BYTES, "%s", value);
}

/* Rows ----------------------------------------------------------------------------------------- */

#define NUMBER(name, value)                                  \
	static void name(const struct subject *s, char *out) \
	{                                                    \
		number(out, value);                          \
	}

NUMBER(inject_size, s->info->tx_attr->inject_size)
NUMBER(iov_limit, s->info->tx_attr->iov_limit)
NUMBER(cq_data_size, s->info->domain_attr->cq_data_size)
NUMBER(max_msg_size, s->info->ep_attr->max_msg_size)

static void registration(const struct subject *s, char *out)
{
	assert_int_equal((s->info->domain_attr->mr_mode & FI_MR_LOCAL) != 0, s->driver->needs_mr);
	text(out, s->driver->needs_mr ? "yes" : "no");
}

static void shared_context(const struct subject *s, char *out)
{
	struct fi_info *hints = make_hints(s->provider);

	hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	text(out, whether(ask(s, hints)));
}

static void delivery_complete(const struct subject *s, char *out)
{
	struct fi_info *hints = make_hints(s->provider);

	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	text(out, whether(ask(s, hints)));
}

static void signal_every(const struct subject *s, char *out)
{
	if (s->driver->signal_every)
		number(out, s->driver->signal_every);
	else
		text(out, "none");
}

static const struct {
	const char *name;
	void (*tell)(const struct subject *subject, char *out);
	uint64_t caps; /* or whether it has these */
} rows[] = {
	{"bytes that fi_inject takes", inject_size, 0},
	{"pieces of an operation", iov_limit, 0},
	{"longest message, bytes", max_msg_size, 0},
	{"immediate data, bytes", cq_data_size, 0},
	{"memory must be registered", registration, 0},
	{"remote reads and writes", NULL, FI_RMA},
	{"atomics", NULL, FI_ATOMIC},
	{"multi-receive buffers", NULL, FI_MULTI_RECV},
	{"shared receive context", shared_context, 0},
	{"completion on delivery", delivery_complete, 0},
	{"frames between completions", signal_every, 0},
};

/* The document --------------------------------------------------------------------------------- */

static unsigned split(char *line, char cells[COLUMNS_MAX][CELL_BYTES])
{
	unsigned count = 0;

	for (char *cell = strtok(line, "|\n"); cell && count < COLUMNS_MAX;
	     cell = strtok(NULL, "|\n")) {
		size_t len;

		cell += strspn(cell, " `");
		len = strlen(cell);
		while (len && strchr(" `", cell[len - 1]))
			len--;
		snprintf(cells[count++], CELL_BYTES, "%.*s", (int)len, cell);
	}
	return count;
}

static FILE *open_matrix(void)
{
	char path[512], line[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/doc/drivers.md", getenv("PLX_SOURCE_ROOT"));
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (strcmp(line, "## What providers say\n") == 0)
			return file;
	fail_msg("doc/drivers.md has no '## What providers say'");
	return NULL;
}

/* The cell in that row and column. */
static void find_cell(const char *row, const char *column, char *out)
{
	char line[4096], cells[COLUMNS_MAX][CELL_BYTES];
	FILE *file = open_matrix();
	unsigned at = 0, count;

	out[0] = '\0';
	while (fgets(line, sizeof(line), file)) {
		if (line[0] != '|')
			continue;
		count = split(line, cells);
		for (unsigned i = 1; !at && i < count; i++)
			if (strcmp(cells[i], column) == 0)
				at = i;
		if (at && at < count && strcmp(cells[0], row) == 0)
			snprintf(out, CELL_BYTES, "%s", cells[at]);
	}
	fclose(file);
}

static const struct plx_fabric_driver *driver_of(const char *provider)
{
	for (unsigned i = 0; plx_drivers[i]; i++)
		if (strcmp(plx_drivers[i]->provider, provider) == 0)
			return plx_drivers[i];
	return NULL;
}

/* Return: how many cells are wrong. */
static unsigned look_at_column(const char *provider, const char *column)
{
	struct subject subject = {driver_of(provider), provider, NULL};
	unsigned wrong = 0;

	if (!subject.driver)
		fail_msg("no driver is for the provider %s", provider);
	subject.info = ask(&subject, make_hints(provider));
	if (!subject.info)
		fail_msg("the provider %s is not here", provider);
	for (size_t i = 0; i < PLX_ARRAY_LEN(rows); i++) {
		char cell[CELL_BYTES], said[CELL_BYTES];

		find_cell(rows[i].name, column, cell);
		if (rows[i].tell)
			rows[i].tell(&subject, said);
		else
			text(said, has_caps(&subject, rows[i].caps));
		if (strcmp(cell, said) != 0) {
			print_message("%s, %s: the document has '%s', it is '%s'\n", rows[i].name,
				      column, cell, said);
			wrong++;
		}
	}
	fi_freeinfo(subject.info);
	return wrong;
}

PLX_TEST(providers_are_as_documented)
{
	fixture_start("tcp", false);
	unsigned wrong = look_at_column("plx_tcp", "plx_tcp") +
			 look_at_column("plx_shm", "plx_shm");

	fixture_stop();
	assert_int_equal(wrong, 0);
}

PLX_TEST(rdma_is_as_documented)
{
	struct subject verbs = {driver_of("verbs"), "verbs", NULL};
	unsigned wrong;

	if (!is_provider_given())
		skip(); /* no device */
	verbs.info = ask(&verbs, make_hints("verbs"));
	assert_non_null(verbs.info);
	fi_freeinfo(verbs.info);
	fixture_start("verbs", false);
	wrong = look_at_column("verbs", is_over_iwarp() ? "verbs on siw" : "verbs on rxe");
	fixture_stop();
	assert_int_equal(wrong, 0);
}

PLX_TEST_MAIN()
