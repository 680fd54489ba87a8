/* SPDX-License-Identifier: BSD-3-Clause */
/* What to change on a host so that Pollux runs well: the report. */
#include "doctor_priv.h"
#include "option_words.h"

#include <stdarg.h>
#include <string.h>

#define WRAP_COLUMNS 92

const char *const info_severity_names[] = {"problem", "advice", "note"};

void doctor_find(struct report *report, enum info_severity severity, const char *id,
		 const char *why, const char *command, const char *format, ...)
{
	struct info_finding *first = report->findings, *finding = first + report->count;
	va_list args;

	if (report->count == INFO_FINDINGS_MAX)
		return;
	for (report->count++; finding > first && finding[-1].severity > severity; finding--)
		*finding = finding[-1];
	report->newest = finding;
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

	va_start(args, format);
	vsnprintf(report->newest->command, sizeof(report->newest->command), format, args);
	va_end(args);
}

unsigned info_doctor(const struct info *info, struct info_finding findings[INFO_FINDINGS_MAX])
{
	struct report report = {.info = info, .findings = findings};

	doctor_check_places(&report);
	doctor_check_rdma(&report);
	doctor_check_host(&report);
	return report.count;
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
