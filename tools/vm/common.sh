# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What setup, build, boot and test share: names, places and messages.
#
# The cache, $cache below, belongs to setup, which fills one directory per
# kernel and moves it into place whole:
#
#	NAME/release		the kernel's release, as uname -r prints it
#	NAME/vmlinuz		what boot starts; of User-mode Linux, a program
#	NAME/config		its configuration
#	NAME/System.map		its symbols, where the package has them
#	NAME/build		what modules are built against
#	NAME/modules/		drivers that boot needs and the kernel lacks,
#				their names beginning with the order to load in
#	NAME/key		of own kernels: hash of the .config and version of the
#				source they are from
#	NAME.log		what make printed, of an own kernel that did not build
#	arm64/bin/		the compiler for it
#	arm64/busybox		its programs, as the host's own do not run there
#	apt/, apt-*/		sources and lists of the releases that the kernels are of
#	promtool/		Prometheus' checker of rules
#	kafka-NAME/		jars of Kafka's brokers, and their version
#	acceleration		what boot has found out about this host

# Messages are searched for words; a make above must not hand its flags down.
export LC_ALL=C
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

# "make test" wants the first four. The others are for "make test-kernels" and, User-mode Linux,
# for benchmarks, simulate, torture, fuzz and mutate.
kernels=(6.1 6.12 6.12-rt debug 6.12-trixie 7.2 arm64 debug-6.12 debug-7.2 kcsan
	uml uml-7.2 uml-7.2-smp uml-7.2-kasan uml-travel)
# shellcheck disable=SC2034 # for setup
test_kernels=(6.1 6.12 6.12-rt debug)
prog=${0##*/}
vm=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034 # for build
root=${vm%/tools/vm}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/twheel

say() {
	printf '%s: %s\n' "$prog" "$*" >&2
}

die() {
	say "$@"
	exit 1
}

is_kernel() {
	local name
	for name in "${kernels[@]}"; do
		[[ $name == "$1" ]] && return
	done
	return 1
}

is_uml() {
	[[ $1 == uml || $1 == uml-* ]]
}

# Is it a User-mode Linux that can have several processors?
is_uml_smp() {
	[[ $1 == uml-7.2-smp || $1 == uml-7.2-kasan ]]
}

# Does it check what it does? Then it is slow.
is_debug() {
	[[ $1 == debug* || $1 == kcsan ]]
}

# Is this kernel built here, from source and a .config of ours?
is_own() {
	is_debug "$1" || is_uml "$1"
}

# The options of an own kernel are in one file, or in two: the second has what differs from the
# other debug kernels, or from uml.
configs_of() {
	case $1 in
	uml | uml-7.2)	echo "$vm/uml.config" ;;
	uml-*)	echo "$vm/uml.config $vm/$1.config" ;;
	debug)	echo "$vm/debug.config $vm/debug-6.1.config" ;;
	*)	echo "$vm/debug.config $vm/$1.config" ;;
	esac
}

# Its options, a line each: of two lines about the same one, the later holds. A line "# NAME" of
# the second file takes an option out that the version does not have.
options_of() {
	# shellcheck disable=SC2046 # words
	awk '
		/^CONFIG_/			{ split($0, name, "="); add(name[1], $0) }
		/^# CONFIG_.* is not set/	{ add($2, $0) }
		/^# CONFIG_[A-Z0-9_]*$/		{ add($2, "") }
		function add(name, line) {
			if (!(name in lines))
				names[++nr] = name
			lines[name] = line
		}
		END {
			for (i = 1; i <= nr; i++)
				if (lines[names[i]] != "")
					print lines[names[i]]
		}' $(configs_of "$1")
}

# Shall this kernel not be used?
is_left_out() {
	[[ " ${TWHEEL_WITHOUT-} " == *" $1 "* ]]
}

# The lines of the calling script's header comment, from "Usage:" on.
usage() {
	sed -n '/^# Usage:/,/^[^#]/ s/^# \{0,1\}//p' "$0"
}

# The release of a cached kernel; nothing when it is not cached.
release_of() {
	cat "$cache/$1/release" 2>/dev/null || true
}

# An own kernel's .config in a form that does not change with its comments.
config_hash() {
	options_of "$1" | sha256sum | cut -d ' ' -f 1
}

# Is everything there that boot and build need of a kernel? Of arm64, with QEMU.
have_kernel() {
	local dir=$cache/$1

	[[ -e $dir/vmlinuz && -e $dir/release && -e $dir/build/Makefile ]] || return
	[[ $1 != arm64 ]] || type -P qemu-system-aarch64 >/dev/null || return
	! is_own "$1" || [[ $(cut -d ' ' -f 1 "$dir/key") == "$(config_hash "$1")" ]]
}

# show_errors LOG: the first error of a make whose jobs ran side by side, with the lines
# around it. Those of the other jobs, which make lets finish, come after it.
show_errors() {
	local first

	first=$(grep -nE -m 1 '(error|Error|ERROR):|undefined reference|\*\*\*' "$1") || {
		tail -n 30 "$1" >&2
		return
	}
	first=${first%%:*}
	sed -n "$((first > 5 ? first - 5 : 1)),$((first + 15)) p" "$1" >&2
}
