/* SPDX-License-Identifier: BSD-3-Clause */
/* What to change on a host so that Pollux runs well: the report. */
#include "doctor_priv.h"
#include "option_words.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define WRAP_COLUMNS 92

const char *const info_severity_names[] = {"problem", "advice", "note"};

void doctor_find(struct report *report, enum info_severity severity, const char *id,
		 const char *why, const char *command, const char *format, ...)
{
	va_list args;

	if (report->count == report->max)
		return;
	struct info_finding *finding = &report->findings[report->count++];
	*finding = (struct info_finding){.severity = severity, .id = id, .why = why};
	va_start(args, format);
	vsnprintf(finding->seen, sizeof(finding->seen), format, args);
	va_end(args);
	if (command)
		doctor_suggest(report, "%s", command);
}

void doctor_suggest(struct report *report, const char *format, ...)
{
	va_list args;

	if (report->count == 0)
		return;
	struct info_finding *finding = &report->findings[report->count - 1];
	va_start(args, format);
	vsnprintf(finding->command, sizeof(finding->command), format, args);
	va_end(args);
}

unsigned info_doctor(const struct info *info, struct info_finding *findings, unsigned max)
{
	struct report report = {.info = info, .max = max};
	struct info_finding *all = calloc(max, sizeof(*all));
	unsigned count = 0;

	if (!all)
		return 0;
	report.findings = all;
	doctor_check_places(&report);
	doctor_check_rdma(&report);
	doctor_check_host(&report);
	for (int severity = INFO_PROBLEM; severity <= INFO_NOTE; severity++) {
		for (unsigned i = 0; i < report.count; i++) {
			if ((int)all[i].severity == severity)
				findings[count++] = all[i];
		}
	}
	free(all);
	return count;
}

/* Printing ----------------------------------------------------------------------------------- */

/* A label and text, wrapped at blanks; continuation lines are indented. */
static void wrapped(FILE *out, const char *label, const char *text)
{
	const size_t room = WRAP_COLUMNS - 12;

	while (*text) {
		size_t len = strlen(text);

		if (len > room) {
			len = room;
			while (len > 1 && text[len] != ' ')
				len--;
		}
		fprintf(out, "%12s%.*s\n", label, (int)len, text);
		text += len + strspn(text + len, " ");
		label = "";
	}
}

void info_print_findings(const struct info *info, FILE *out)
{
	static const char *const marks[] = {"!!", "! ", "- "};

	fprintf(out, "\nDoctor\n");
	if (info->finding_count == 0)
		fprintf(out, "  nothing to change\n");
	for (unsigned i = 0; i < info->finding_count; i++) {
		const struct info_finding *finding = &info->findings[i];
		char seen[4 * sizeof(finding->seen)]; /* a byte becomes four at most */

		fprintf(out, "  %s %s: %s\n", marks[finding->severity],
			info_severity_names[finding->severity],
			plx_app_printable(finding->seen, seen, sizeof(seen)));
		wrapped(out, "why: ", finding->why);
		/* Not wrapped, so that it can be copied. */
		if (finding->command[0])
			fprintf(out, "%12s%s\n", "do: ", finding->command);
	}
}
