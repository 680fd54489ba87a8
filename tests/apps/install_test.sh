#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs the build into a temporary folder, and builds a program against it with pkg-config alone, like a user of the
# library.
#
#     install_test.sh SANITIZER PROGRAM...: the installed ones
set -euo pipefail

sanitizer=${1:-none}
if [[ $sanitizer != none ]]; then
	echo "a program without the sanitizer cannot load a library with it ($sanitizer)"
	exit 77
fi

fail()
{
	printf 'install_test: %s\n' "$1" >&2
	exit 1
}

temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

meson install -C "$PLX_BUILD_ROOT" --no-rebuild --quiet --destdir "$temp"
pc=$(find "$temp" -name pollux.pc)
[[ -n $pc ]] || fail 'pollux.pc is not installed'
lib_dir=$(cd "$(dirname "$pc")/.." && pwd)
export PKG_CONFIG_PATH=$lib_dir/pkgconfig
prefix=$(cd "$(pkg-config --variable=includedir pollux)/.." && pwd)
for option in --dont-define-prefix --define-prefix; do
	flags=$(pkg-config $option --cflags-only-I --libs-only-L pollux)
	headers=0 libs=0
	for flag in $flags; do
		[[ ! -f ${flag#-I}/plx_eal.h ]] || headers=1
		[[ ! -f ${flag#-L}/libpollux.so ]] || libs=1
	done
	((headers && libs)) || fail "pkg-config $option: wrong paths: $flags"
done

for header in "$PLX_SOURCE_ROOT"/lib/*/plx_*.h; do
	[[ $header == *_priv.h || -f $prefix/include/pollux/${header##*/} ]] ||
		fail "${header##*/} is not in $prefix/include/pollux"
done
# lib/app and its dependencies are for programs of this tree.
[[ ! -e $prefix/include/pollux/app.h ]] || fail 'app.h is installed'
[[ $(pkg-config --print-requires-private pollux) != *jansson* ]] || fail 'pollux.pc requires jansson'
undeclared=$(comm -13 \
	<(cat "$prefix"/include/pollux/{,netio/}*.h "$PLX_SOURCE_ROOT"/lib/{base/base_internal,eal/option_words}.h | grep -oE '\w+' | sort -u) \
	<(nm -D --defined-only "$lib_dir/libpollux.so" | grep -oE '\b(plx|netio)_\w+' | sort -u))
[[ -z $undeclared ]] || fail "libpollux exports what no installed header declares: $undeclared"
[[ -f $prefix/include/pollux/netio/netio.h ]] || fail 'netio/netio.h is not installed'
for app in "${@:2}"; do
	[[ -x $prefix/bin/$app ]] || fail "$app is not installed"
	! nm "$prefix/bin/$app" | grep ' plx_eal_init$' | grep -v ' U ' || fail "$app has parts of libpollux in it"
	[[ -f $prefix/share/man/man1/$app.1 ]] || fail "the man page of $app is not installed"
	[[ -f $prefix/share/bash-completion/completions/$app ]] || fail "$app has no completion"
	LD_LIBRARY_PATH=$lib_dir "$prefix/bin/$app" --version >/dev/null </dev/null || fail "$app --version fails"
	if [[ ${prefix#"$temp"} =~ ^/usr(/local)?$ ]]; then
		! readelf -d "$prefix/bin/$app" | grep -E 'RPATH|RUNPATH' || fail "$app has a path of libraries"
	else
		env -u LD_LIBRARY_PATH "$prefix/bin/$app" --version >/dev/null </dev/null ||
			fail "$app does not find libpollux below its prefix"
	fi
done

cat >"$temp/user.c" <<'END'
#include <plx_eal.h>
#include <plx_fabric.h>
#include <plx_stats.h>

#include <stdio.h>

int main(void)
{
	struct plx_eal_conf conf = {.huge = PLX_HUGE_NONE};

	if (plx_eal_init(&conf) != 0) {
		fprintf(stderr, "%s\n", plx_error());
		return 1;
	}
	printf("%s, %s\n", plx_version(), plx_link_reason_name(PLX_LINK_CLOSED));
	return plx_eal_fini() != 0;
}
END
# Splitting words is intended: the compiler may include options, and pkg-config prints several.
# shellcheck disable=SC2046,SC2086
${CC:-cc} -std=c11 -Wall -Wextra -Werror $(pkg-config --cflags pollux) "$temp/user.c" \
	$(pkg-config --libs pollux) -o "$temp/user" || fail 'a program does not build with what pkg-config says'
for header in netio.h netio/netio.h; do
	cat >"$temp/netio.c" <<-END
	#include <$header>
	static struct netio_context signal; /* no <signal.h> comes with it */
	int main(void) { return netio_fini(&signal); }
	END
	# shellcheck disable=SC2046,SC2086
	${CC:-cc} -std=c11 -Wall -Wextra -Werror $(pkg-config --cflags pollux) "$temp/netio.c" \
		$(pkg-config --libs pollux) -o "$temp/netio" || fail "a program with $header does not build"
	LD_LIBRARY_PATH=$lib_dir "$temp/netio" || fail "a program with $header fails"
done
for module in plx_shm plx_tcp; do
	[[ -f $lib_dir/libfabric/lib$module-fi.so ]] || fail "the module $module is not installed"
done
# As apps/examples/README.md says.
for example in link_server netio_hello; do
	# shellcheck disable=SC2046,SC2086
	${CC:-cc} -std=gnu11 -Wall -Werror "$PLX_SOURCE_ROOT/apps/examples/$example.c" $(pkg-config --cflags --libs pollux) \
		-o "$temp/$example" || fail "the example $example does not build"
done
said=$(LD_LIBRARY_PATH=$lib_dir "$temp/user") || fail 'the program fails'
[[ $said == "$(pkg-config --modversion pollux), closed" ]] || fail "the program said '$said'"
echo "install_test: $said"
