/* SPDX-License-Identifier: BSD-3-Clause */
/* Print struct info by its description: as text for people, and as one JSON object for programs.
 * CPU sets are texts in the kernel's list format; in JSON unknown values are null. */
#include "describe.h"
#include "option_words.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#define VALUE_BYTES     4096
#define PRINTABLE_BYTES (4 * VALUE_BYTES) /* a byte becomes four at most */

static unsigned number_at(const char *data, size_t offset)
{
	const void *number = data + offset;

	return *(const unsigned *)number;
}

/* The structures of a list, one after the other. parent: the structure above the list's own.
 * Return: NULL after the last. */
static const void *next_item(const struct info_field *list, const void *data, const void *parent,
			     unsigned *at)
{
	const char *owner = list->match ? parent : data;
	unsigned count = number_at(owner, list->count_offset);

	while (*at < count) {
		const char *item = owner + list->offset + (*at)++ * list->item_bytes;

		if (!list->match ||
		    number_at(item, list->item_offset) == number_at(data, list->own_offset))
			return item;
	}
	return NULL;
}

/* JSON ----------------------------------------------------------------------------------------- */

/* Invalid UTF-8 is escaped; otherwise there would be no JSON at all. */
static json_t *text_json(const char *text)
{
	char printable[PRINTABLE_BYTES];

	return json_string(plx_app_printable(text, printable, sizeof(printable)));
}

static json_t *words_json(const char *list)
{
	json_t *array = json_array();

	while (*list) {
		size_t len = strcspn(list, " ");

		json_array_append_new(array, json_stringn(list, len));
		list += len + strspn(list + len, " ");
	}
	return array;
}

static json_t *cpus_json(const struct plx_cpuset *cpus)
{
	char list[VALUE_BYTES];

	if (plx_cpuset_count(cpus) == 0)
		return json_string("");
	return json_string(plx_cpuset_format(cpus, list, sizeof(list)));
}

static json_t *object_json(const struct info_field *fields, const void *data, const void *parent);

static json_t *list_json(const struct info_field *list, const void *data, const void *parent)
{
	json_t *array = json_array();
	const void *item;

	for (unsigned at = 0; (item = next_item(list, data, parent, &at));)
		json_array_append_new(array, object_json(list->of, item, data));
	return array;
}

/* An object that may be missing is if its first value is unknown. */
static json_t *optional_json(const struct info_field *field, const void *data, const void *parent)
{
	json_t *object = object_json(field->of, data, parent);

	if (!field->missing || !json_is_null(json_object_get(object, field->of->key)))
		return object;
	json_decref(object);
	return NULL;
}

/* Return: NULL: the value is unknown. */
static json_t *value_json(const struct info_field *field, const void *data, const void *parent)
{
	const void *at = (const char *)data + field->offset;
	const unsigned *count = at;
	const int *number = at;
	const uint64_t *large = at;
	const double *real = at;

	switch (field->kind) {
	case INFO_TEXT:
	case INFO_STATE:
		return *(const char *)at ? text_json(at) : NULL;
	case INFO_NAME:
		return json_string(at) ?: text_json(at);
	case INFO_POINTER:
		return json_string(*(const char *const *)at);
	case INFO_WORDS:
		return words_json(at);
	case INFO_CHOICE:
		return json_string(field->words[*count]);
	case INFO_COUNT:
		return json_integer(*count);
	case INFO_KNOWN:
		return *count ? json_integer(*count) : NULL;
	case INFO_SIGNED:
		return json_integer(*number);
	case INFO_NATURAL:
		return *number < 0 ? NULL : json_integer(*number);
	case INFO_LARGE:
	case INFO_BYTES:
		return *large == UINT64_MAX ? NULL : json_integer((json_int_t)*large);
	case INFO_REAL:
		return *real < 0 ? NULL : json_real(*real);
	case INFO_BOOL:
		return json_boolean(*(const bool *)at);
	case INFO_CPUS:
		return cpus_json(at);
	case INFO_OBJECT:
		return optional_json(field, at, data);
	case INFO_LIST:
		return list_json(field, data, parent);
	case INFO_END:
		break;
	}
	return NULL;
}

static json_t *object_json(const struct info_field *field, const void *data, const void *parent)
{
	json_t *object = json_object();

	for (; field->kind != INFO_END; field++)
		if (field->key)
			json_object_set_new(object, field->key,
					    value_json(field, data, parent) ?: json_null());
	return object;
}

int info_print_json(const struct info *info, FILE *out)
{
	json_t *all = object_json(info_fields, info, info);
	bool done = json_dumpf(all, out, JSON_INDENT(2) | JSON_ENSURE_ASCII) == 0 &&
		    fputc('\n', out) != EOF;

	json_decref(all);
	return done ? 0 : plx_fail(EIO, "--format json: standard output cannot be written to");
}

/* Text ----------------------------------------------------------------------------------------- */

/* Where the text goes. Lines end when the next one starts. */
struct page {
	FILE *out;
	bool in_line;
	int depth; /* of lists */
};

static void end_line(struct page *page)
{
	if (page->in_line)
		fputc('\n', page->out);
	page->in_line = false;
}

static void start_line(struct page *page, const char *label)
{
	end_line(page);
	fprintf(page->out, "  %-15s %*s", label, 2 * page->depth, "");
	page->in_line = true;
}

/* In whole units without noticeable loss: GiB from 10 GiB on, and for the 1 GiB page. */
static void put_bytes(FILE *out, uint64_t bytes)
{
	if (bytes >= UINT64_C(10) << 30 || bytes == UINT64_C(1) << 30)
		fprintf(out, "%" PRIu64 " GiB", bytes >> 30);
	else if (bytes >= UINT64_C(1) << 20)
		fprintf(out, "%" PRIu64 " MiB", bytes >> 20);
	else
		fprintf(out, "%" PRIu64 " KiB", bytes >> 10);
}

/* What the kernel and its users name must not control a terminal. */
static void put_text(FILE *out, const char *text)
{
	char printable[PRINTABLE_BYTES];

	fputs(plx_app_printable(text, printable, sizeof(printable)), out);
}

/* Whether the text has more of the value than `missing`. */
static bool is_shown(const json_t *value)
{
	return value && !json_is_false(value) &&
	       (!json_is_string(value) || json_string_length(value)) &&
	       (!json_is_array(value) || json_array_size(value));
}

static void put_fields(struct page *page, const struct info_field *field, const void *data,
		       const void *parent);

static void put_list(struct page *page, const struct info_field *list, const void *data,
		     const void *parent)
{
	const char *label = list->label;
	const void *item;

	for (unsigned at = 0; (item = next_item(list, data, parent, &at)); label = "") {
		start_line(page, label);
		page->depth++;
		put_fields(page, list->of, item, data);
		page->depth--;
	}
	if (label[0] && list->missing) {
		start_line(page, label);
		fputs(list->missing, page->out);
	}
}

static void put_known(struct page *page, const struct info_field *field, const void *data,
		      const json_t *value)
{
	const void *at = (const char *)data + field->offset;
	FILE *out = page->out;

	fputs(field->before, out);
	if (field->kind == INFO_OBJECT)
		put_fields(page, field->of, at, data);
	else if (field->kind == INFO_STATE)
		put_text(out, info_state_word(at));
	else if (field->kind == INFO_WORDS)
		put_text(out, at);
	else if (field->kind == INFO_CPUS)
		fprintf(out, "%s (%u)", json_string_value(value), plx_cpuset_count(at));
	else if (field->kind == INFO_BYTES)
		put_bytes(out, (uint64_t)json_integer_value(value));
	else if (json_is_string(value))
		put_text(out, json_string_value(value));
	else if (json_is_integer(value))
		fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		fprintf(out, "%.*f", field->digits, json_real_value(value) * field->scale);
	fputs(field->after ?: "", out);
}

static void put_value(struct page *page, const struct info_field *field, const void *data)
{
	json_t *value = value_json(field, data, data);
	bool shown = is_shown(value);

	if (field->label && (shown || field->missing))
		start_line(page, field->label);
	if (shown)
		put_known(page, field, data, value);
	else
		fputs(field->missing ?: "", page->out);
	json_decref(value);
}

static void put_fields(struct page *page, const struct info_field *field, const void *data,
		       const void *parent)
{
	for (; field->kind != INFO_END; field++) {
		if (field->heading) {
			end_line(page);
			fprintf(page->out, "\n%s\n", field->heading);
		}
		if (field->kind == INFO_LIST && field->label)
			put_list(page, field, data, parent);
		else if (field->kind == INFO_OBJECT && field->heading)
			put_fields(page, field->of, (const char *)data + field->offset, data);
		else if (field->before)
			put_value(page, field, data);
	}
}

void info_print(const struct info *info, FILE *out)
{
	struct page page = {.out = out};

	fprintf(out, "Pollux %s\n", info->version);
	put_fields(&page, info_fields, info, info);
	end_line(&page);
}
