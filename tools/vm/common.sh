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
#	apt/, apt-sid/		sources and lists of the releases that the kernels are of
#	promtool/		Prometheus' checker of rules
#	kafka-NAME/		jars of Kafka's brokers, and their version
#	acceleration		what boot has found out about this host

# Messages are searched for words; a make above must not hand its flags down.
export LC_ALL=C
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

# The last ones, User-mode Linux, are for benchmarks; tests do without them.
kernels=(6.1 6.12 6.12-rt debug uml uml-7.2)
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
	[[ $1 == uml || $1 == uml-7.2 ]]
}

# Is this kernel built here, from source and a .config of ours?
is_own() {
	[[ $1 == debug ]] || is_uml "$1"
}

# The options of an own kernel; those of User-mode Linux are the same for each version.
config_of() {
	local name=$1
	! is_uml "$1" || name=uml
	echo "$vm/$name.config"
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
	grep -E '^(CONFIG_|# CONFIG_.* is not set)' "$(config_of "$1")" |
		sha256sum | cut -d ' ' -f 1
}

# Is everything there that boot and build need of a kernel?
have_kernel() {
	local dir=$cache/$1

	[[ -e $dir/vmlinuz && -e $dir/release && -e $dir/build/Makefile ]] || return
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
