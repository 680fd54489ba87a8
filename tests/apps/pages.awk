# SPDX-License-Identifier: BSD-3-Clause
# What pages name and is not there: awk -f pages.awk LIST pass=1 PAGE... pass=2 PAGE...
# LIST has the files of the tree. Names are looked for from the page's folder and from the root: targets of links, with
# their headings; words that begin with a folder of the root; and in backticks names of sources, also by the end of their
# path alone. Capitals and <> stand for something else, and * for any text; apps/pages is the test of that name.
function normal(path, part, n, i, kept, out)
{
	n = split(path, part, "/")
	kept = 0
	for (i = 1; i <= n; i++) {
		if (part[i] == ".." && kept > 0)
			kept--
		else if (part[i] != "." && part[i] != "")
			part[++kept] = part[i]
	}
	out = part[1]
	for (i = 2; i <= kept; i++)
		out = out "/" part[i]
	return kept ? out : "."
}

function fits(pattern, paths, path)
{
	gsub(/\./, "\\.", pattern)
	gsub(/\*/, "[^/]*", pattern)
	for (path in paths)
		if (path ~ "^" pattern "$")
			return 1
	return 0
}

function is_there(name)
{
	if (name ~ /\*/)
		return fits(normal(name), known)
	return name == "" || normal(folder name) in known || normal(name) in known
}

function report(what)
{
	print FILENAME ":" FNR ": " what
}

function check_link(target, at, anchor, file)
{
	if (target ~ /^[a-z]+:/)
		return
	at = index(target, "#")
	anchor = at ? substr(target, at + 1) : ""
	file = at ? substr(target, 1, at - 1) : target
	file = file == "" ? FILENAME : normal(folder file)
	if (!(file in known))
		report("no file " target)
	else if (anchor != "" && file in has_headings && !((file "#" anchor) in headings))
		report("no heading " target)
}

# A part of a path that stands for others ends it.
function without_places(word, part, n, i, out)
{
	n = split(word, part, "/")
	out = part[1]
	for (i = 2; i <= n && part[i] !~ /[<>{}]/ && part[i] !~ /^[A-Z]+$/; i++)
		out = out "/" part[i]
	return out
}

function check_word(word)
{
	sub(/[.,]+$/, "", word)
	if (word !~ /\// || !(substr(word, 1, index(word, "/") - 1) in tops))
		return
	if (!is_there(without_places(word)) && !((FILENAME " " word) in allowed) && !fits("tests/" word "_test.*", known))
		report("no file " word)
}

function check_name(word)
{
	if (word !~ /^[a-z].*\.(c|h|cc|sh|md|build|conf|jq|awk|pml|py|gp|service)$/ || word ~ /[<>A-Z]/ ||
	    substr(word, 1, index(word "/", "/") - 1) in tops || (FILENAME " " word) in allowed)
		return
	if (!is_there(word) && !(word in ends) && !(word ~ /\*/ && fits(word, ends)))
		report("no file " word)
}

# lib/{mem,ring} are two.
function expanded(text, head, tail, word, part, n, i)
{
	while (match(text, /[A-Za-z0-9_.\/-]*{[a-z_,]+}[A-Za-z0-9_.\/-]*/)) {
		word = substr(text, RSTART, RLENGTH)
		head = substr(word, 1, index(word, "{") - 1)
		tail = substr(word, index(word, "}") + 1)
		n = split(substr(word, length(head) + 2, length(word) - length(head) - length(tail) - 2), part, ",")
		for (i = 1; i <= n; i++)
			text = text " " head part[i] tail
		text = substr(text, 1, RSTART - 1) substr(text, RSTART + RLENGTH)
	}
	return text
}

# each_word TEXT KIND
function each_word(text, kind, word)
{
	text = expanded(text)
	while (match(text, /[A-Za-z0-9_.\/*<>{}-]+/)) {
		word = substr(text, RSTART, RLENGTH)
		text = substr(text, RSTART + RLENGTH)
		if (kind == "name")
			check_name(word)
		else
			check_word(word)
	}
}

# As GitHub makes them.
function slug(text)
{
	text = tolower(text)
	gsub(/\]\([^)]*\)/, "", text)
	gsub(/[^a-z0-9 _\200-\377-]/, "", text)
	gsub(/ /, "-", text)
	return text
}

BEGIN {
	split("apps config doc drivers lib scripts tests", list, " ")
	for (i in list)
		tops[list[i]] = 1
	split(exceptions, list, "\n")
	for (i in list)
		allowed[list[i]] = 1
}

!pass {
	n = split($0, part, "/")
	path = part[1]
	tail = part[n]
	known[$0] = ends[part[n]] = 1
	for (i = 1; i < n; i++) {
		known[path] = 1
		path = path "/" part[i + 1]
		tail = part[n - i] "/" tail
		ends[tail] = 1
	}
	next
}

FNR == 1 {
	folder = FILENAME
	sub(/[^\/]*$/, "", folder)
	fenced = 0
}

/^ *```/ {
	fenced = !fenced
}

pass == 1 {
	if (!fenced && /^#+ /) {
		has_headings[FILENAME] = 1
		name = FILENAME "#" slug(substr($0, index($0, " ") + 1))
		suffix = headings[name]++
		if (suffix)
			headings[name "-" suffix] = 1
	}
	next
}

{
	for (text = fenced ? "" : $0; match(text, /\]\([^)]+\)/); text = substr(text, RSTART + RLENGTH))
		check_link(substr(text, RSTART + 2, RLENGTH - 3))
	n = split($0, part, "`")
	for (i = 2; i <= n; i += 2)
		each_word(part[i], "name")
	text = $0
	gsub(/\]\([^)]+\)/, "]", text)
	each_word(text, "word")
}
