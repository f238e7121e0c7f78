# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154 # common.sh and packages.sh say where things are
# An empty Debian in a chroot, for the test of the packages. A script that sources this
# file has sourced tools/vm/common.sh and tools/vm/packages.sh, and sets:
#
#	chroot		the directory of the chroot
#	archives	a directory in which apt keeps packages for the next time
#	shared		a directory that the chroot has as /shared

job=

# dpkg need not wait for the disk: after a crash of the machine the system is made again.
write_settings() {
	local main security
	main=$(main_mirror)
	security=$(security_mirror)
	cat >"$chroot/etc/apt/sources.list" <<-END
		deb $main $debian main
		deb $main $debian-updates main
	END
	[[ -z $security ]] ||
		echo "deb $security $debian-security main" >>"$chroot/etc/apt/sources.list"
	apt_settings >"$chroot/etc/apt/apt.conf.d/90settings"
	echo force-unsafe-io >"$chroot/etc/dpkg/dpkg.cfg.d/unsafe-io"
	cp -L /etc/hosts /etc/resolv.conf "$chroot/etc/"
	mkdir "$chroot/shared"
}

# The result of debootstrap is kept for a week.
unpack_system() {
	local base=${archives%/*}/base.tar
	mkdir -p "$archives/partial"
	if [[ -z $(find "$base" -mtime -7 2>/dev/null) ]]; then
		debootstrap --variant=minbase --keyring="$keyring" --cache-dir="$archives" \
			"$debian" "$chroot" "$(main_mirror)" || return
		tar -cf "$base.tmp" -C "$chroot" . && mv "$base.tmp" "$base" || return
	else
		tar -xf "$base" -C "$chroot" || return
	fi
	write_settings
}

# inside COMMAND...: run it in the chroot, with an empty environment. When unshare is killed,
# so is the first process of the chroot, and with it all others; the mounts end with the
# last one.
inside() {
	local status=0
	# shellcheck disable=SC2016 # for the other shell
	unshare --mount --pid --fork --kill-child bash -c '
		mount -t proc proc "$1/proc" &&
		mount --rbind /sys "$1/sys" &&
		mount --rbind /dev "$1/dev" &&
		mount --bind "$2" "$1/var/cache/apt/archives" &&
		mount --bind "$3" "$1/shared" || exit
		root=$1
		shift 3
		exec chroot "$root" env -i -C /shared HOME=/root TERM=dumb LC_ALL=C \
			DEBIAN_FRONTEND=noninteractive \
			PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' \
		- "$chroot" "$archives" "$shared" "$@" </dev/null &
	job=$!
	wait "$job" || status=$?
	job=
	return "$status"
}

# apt_inside COMMAND ARGUMENT...
apt_inside() {
	inside apt-get -q -y -o Dpkg::Use-Pty=0 --no-install-recommends "$@"
}

# List the files in the chroot: type, mode, owner, size, path and target of each. The
# records of dpkg and apt are left out, and so are /run, which does not survive a reboot, and
# /opt, which belongs to the test.
snapshot() {
	(cd "$chroot" && find . -xdev \
		\( -path ./proc -o -path ./sys -o -path ./dev -o -path ./run -o -path ./tmp \
		-o -path ./opt -o -path ./var/log -o -path ./var/cache -o -path ./var/lib/apt -o -path './var/lib/dpkg/status*' \) \
		-prune -o -type f -printf '%y %m %u %g %p %s\n' \
		-o -printf '%y %m %u %g %p %l\n') | sort -k 5
}
