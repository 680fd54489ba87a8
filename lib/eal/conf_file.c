/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration file, parsed by libconfig from memory. libconfig's own reader would follow
 * @include, and its scanner ends the process if that names a directory. */
#include "eal_priv.h"

#include <errno.h>
#include <libconfig.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_BYTES_MAX 65536
#define KEY_BYTES      24

struct source {
	struct plx_eal_conf *conf;
	const char *path;
	const struct plx_eal_conf *before; /* of the command line, which wins */
};

static int fail_path(const struct source *source, int err, const char *what)
{
	return plx_fail(err, "%s %s: %s", eal_conf_origin(source->conf, OPT_CONFIG), source->path,
			what);
}

/* text has room for FILE_BYTES_MAX + 1 bytes. */
static int load(const struct source *source, char *text)
{
	struct stat status;
	FILE *file = NULL;
	size_t len;
	int rc;

	if (stat(source->path, &status) == 0 && !S_ISREG(status.st_mode))
		return fail_path(source, EINVAL,
				 S_ISDIR(status.st_mode)
					 ? "a directory; give the path of a file"
					 : "not a regular file; give the path of one");
	file = fopen(source->path, "re");
	if (!file)
		return fail_path(source, errno,
				 errno == ENOENT ? "no such file; give the path of one"
						 : strerror(errno));
	len = fread(text, 1, FILE_BYTES_MAX + 1, file);
	rc = ferror(file) ? errno : 0;
	fclose(file);
	if (rc)
		return fail_path(source, rc, strerror(rc));
	if (len > FILE_BYTES_MAX)
		return fail_path(source, EINVAL, "longer than 64 KiB; is it the right file?");
	if (memchr(text, '\0', len))
		return fail_path(source, EINVAL, "not a text file: it has a byte of value 0");
	text[len] = '\0';
	return 0;
}

/* Return the last byte of the comment or string; NULL if it is unterminated. */
static const char *end_of(const char *at)
{
	if (*at == '"') {
		for (at++; *at && *at != '"'; at++)
			at += *at == '\\' && at[1];
		return *at ? at : NULL;
	}
	if (at[0] == '/' && at[1] == '*') {
		at = strstr(at + 2, "*/");
		return at ? at + 1 : NULL;
	}
	if (*at == '#' || (at[0] == '/' && at[1] == '/'))
		return at + strcspn(at, "\n") - 1;
	return at;
}

/* Reject what libconfig would silently skip with all that follows, or would act on. */
static int check_text(const struct source *source, const char *text)
{
	const char *end;
	unsigned line = 1;

	for (const char *at = text; *at; at = end + 1) {
		bool starts_line = at == text || at[-1] == '\n';

		if (starts_line && strncmp(at + strspn(at, " \t"), "@include", 8) == 0)
			return plx_fail(EINVAL,
					"%s:%u: @include is not supported; put all settings into "
					"one file",
					source->path, line);
		end = end_of(at);
		if (!end)
			return plx_fail(EINVAL, "%s:%u: %s begins here and has no end",
					source->path, line, *at == '"' ? "a string" : "a comment");
		for (const char *byte = at; byte <= end; byte++)
			line += *byte == '\n';
	}
	return 0;
}

/* Settings --------------------------------------------------------------------------------- */

static const char *type_name(const config_setting_t *setting)
{
	static const char *const names[] = {
		[CONFIG_TYPE_NONE] = "nothing",   [CONFIG_TYPE_GROUP] = "a group",
		[CONFIG_TYPE_INT] = "a number",   [CONFIG_TYPE_INT64] = "a number",
		[CONFIG_TYPE_FLOAT] = "a number", [CONFIG_TYPE_STRING] = "a string",
		[CONFIG_TYPE_BOOL] = "a boolean", [CONFIG_TYPE_ARRAY] = "a list",
		[CONFIG_TYPE_LIST] = "a list",
	};

	return names[config_setting_type(setting)];
}

/* The name of an option in a file; NULL: it does not belong there. */
static const char *key_of(enum eal_option_id id, char out[KEY_BYTES])
{
	const struct plx_option *option = &plx_eal_options[id];

	if (option->kind == PLX_APP_FLAG || id == OPT_CONFIG)
		return NULL;
	snprintf(out, KEY_BYTES, "%s", option->name);
	for (char *dash = strchr(out, '-'); dash; dash = strchr(dash, '-'))
		*dash = '_';
	return out;
}

static int take_string(const struct source *source, const config_setting_t *setting,
		       enum eal_option_id id)
{
	char buffer[KEY_BYTES];
	const char *key = key_of(id, buffer), *text;
	unsigned line = config_setting_source_line(setting);
	char given[512];

	text = config_setting_get_string(setting);
	if (!*text)
		return plx_fail(EINVAL, "%s:%u: %s is empty; give it a value or take it out",
				source->path, line, key);
	text = eal_conf_own(source->conf, text);
	if (!text)
		return -ENOMEM;
	snprintf(given, sizeof(given), "%s in %s:%u", key, source->path, line);
	return eal_conf_set(source->conf, id, text, given);
}

static bool is_given_before(const struct source *source, enum eal_option_id id)
{
	const char *const *origin = source->before->origin;

	if (id == OPT_LCORES || id == OPT_COREMASK)
		return origin[OPT_LCORES] || origin[OPT_COREMASK];
	return origin[id];
}

/* A string, or a list of strings for log_level. */
static int take_setting(const struct source *source, const config_setting_t *setting,
			enum eal_option_id id)
{
	bool levels = id == OPT_LOG_LEVEL;
	bool is_list = levels &&
		       (config_setting_is_array(setting) || config_setting_is_list(setting));
	int count = is_list ? config_setting_length(setting) : 1, rc = 0;
	char key[KEY_BYTES];

	for (int i = 0; i < count && rc == 0; i++) {
		const config_setting_t *entry = is_list ? config_setting_get_elem(setting,
										  (unsigned)i)
							: setting;

		if (config_setting_type(entry) != CONFIG_TYPE_STRING)
			return plx_fail(EINVAL, "%s:%u: %s%s is %s; it must be %s", source->path,
					config_setting_source_line(entry),
					is_list ? "an entry of " : "", key_of(id, key),
					type_name(entry),
					levels && !is_list ? "a string or a list of strings"
							   : "a string, in double quotes");
		if (!is_given_before(source, id))
			rc = take_string(source, entry, id);
	}
	return rc;
}

static int fail_key(const struct source *source, const config_setting_t *setting)
{
	const char *keys[OPT_COUNT], *key = config_setting_name(setting), *nearest;
	unsigned line = config_setting_source_line(setting);
	char buffers[OPT_COUNT][KEY_BYTES], all[512] = "";
	size_t count = 0;

	for (unsigned id = 0; id < OPT_COUNT; id++)
		if (key_of(id, buffers[id]))
			keys[count++] = buffers[id];
	nearest = plx_suggest(key, keys, count);
	if (nearest)
		return plx_fail(EINVAL, "%s:%u: %s: unknown setting; did you mean %s?",
				source->path, line, key, nearest);
	for (size_t i = 0; i < count; i++)
		plx_list_add(all, sizeof(all), keys[i]);
	return plx_fail(EINVAL, "%s:%u: %s: unknown setting; there are: %s", source->path, line,
			key, all);
}

static int take_named(const struct source *source, const config_setting_t *setting)
{
	for (unsigned id = 0; id < OPT_COUNT; id++) {
		char buffer[KEY_BYTES];
		const char *key = key_of(id, buffer);

		if (key && strcmp(config_setting_name(setting), key) == 0)
			return take_setting(source, setting, id);
	}
	return fail_key(source, setting);
}

static int take_all(const struct source *source, const config_setting_t *root)
{
	int count = config_setting_length(root), rc = 0;

	for (int i = 0; i < count && rc == 0; i++)
		rc = take_named(source, config_setting_get_elem(root, (unsigned)i));
	return rc ?: eal_conf_check_pair(source->conf);
}

static int parse(const struct source *source, const char *text)
{
	config_t config;
	int rc;

	config_init(&config);
	if (config_read_string(&config, text))
		rc = take_all(source, config_root_setting(&config));
	else
		rc = plx_fail(EINVAL, "%s:%d: %s; a setting is written lcores = \"0-3\";",
			      source->path, config_error_line(&config), config_error_text(&config));
	config_destroy(&config);
	return rc;
}

int plx_eal_conf_file(struct plx_eal_conf *conf)
{
	const struct plx_eal_conf before = *conf;
	const struct source source = {.conf = conf, .path = conf->config, .before = &before};
	const char *settings;
	char *text;
	int rc;

	if (!conf->config || conf->config_read)
		return 0;
	text = malloc(FILE_BYTES_MAX + 1);
	if (!text)
		return plx_fail(ENOMEM, "out of memory");
	conf->log_level_count = 0;
	rc = load(&source, text);
	/* Some editors write a byte order mark first. */
	settings = text + (rc == 0 && strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
	rc = rc ?: check_text(&source, settings) ?: parse(&source, settings);
	free(text);
	/* Levels apply in order, so those of the command line follow those of the file. */
	for (uint32_t i = 0; i < before.log_level_count && rc == 0; i++)
		rc = eal_conf_add_level(conf, before.log_levels[i], before.level_origins[i]);
	conf->config_read = rc == 0;
	return rc;
}
