# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154 # common.sh says where the cache is
# Debian packages for setup: the machine's own, which its apt installs, and those of the
# kernels, which are only unpacked.

# --- the machine's packages -------------------------------------------------

can_be_root() {
	((EUID == 0)) || command -v sudo >/dev/null
}

as_root() {
	if ((EUID == 0)); then
		"$@"
	else
		sudo "$@"
	fi
}

# The lock is there because two runs at a time would disturb each other's lists.
apt() {
	mkdir -p "$cache"
	as_root flock "$cache/.lock.apt" env DEBIAN_FRONTEND=noninteractive \
		apt-get -q -y -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 "$@" >&2
}

# Fetch the package lists, at most once a run: a new machine has none, and old lists name
# versions that have been removed from the archive.
updated=
update_lists() {
	[[ -z $updated ]] || return
	can_be_root || return
	say "updating the package lists"
	apt update || return
	updated=yes
}

missing_packages() {
	local package
	declare -A installed
	while read -r package; do
		installed[$package]=1
	done < <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null |
		sed -n 's/ installed$//p')
	for package; do
		[[ -n ${installed[$package]-} ]] || echo "$package"
	done
}

apt_install() {
	apt install --no-install-recommends --simulate "$@" >/dev/null 2>&1 || update_lists || return
	apt install --no-install-recommends "$@" && return
	update_lists && apt install --no-install-recommends "$@"
}

# Install those of the named packages that are missing.
try_packages() {
	local missing
	mapfile -t missing < <(missing_packages "$@")
	((${#missing[@]})) || return 0
	can_be_root || return
	say "installing ${missing[*]}"
	apt_install "${missing[@]}"
}

need_packages() {
	try_packages "$@" && return
	local missing
	mapfile -t missing < <(missing_packages "$@")
	say "could not install: ${missing[*]}"
	can_be_root || say "installing needs root or sudo"
	say "this installs them, as root:"
	say "    apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
	exit 1
}

# The names of the packages that a package depends on, one a line. The input is the
# output of apt-cache show.
depends() {
	sed -n 's/^Depends: //p' | sed 's/[,|] */\n/g' | sed 's/ .*//'
}

# The package of clang's sanitizers has the version of clang in its name, which differs
# between releases.
clang_runtime() {
	local version
	[[ -n $(apt-cache show clang 2>/dev/null) ]] || update_lists
	version=$(apt-cache --no-all-versions show clang | depends | sed -n 's/^clang-//p')
	echo "libclang-rt-$version-dev"
}

# --- the packages of the kernels --------------------------------------------
#
# The kernels are from certain releases of Debian, and the machine may have another one. So apt
# fetches them with a configuration below the cache, with sources, lists and a status of
# its own. For the rest, such as a proxy, the machine's configuration holds. This needs
# no root.

debian=bookworm
architecture=amd64
apt_dir=$cache/apt
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# mirror LABEL: the address from which the machine fetches packages with this label of
# Debian's, or nothing if it has no such source.
mirror() {
	# shellcheck disable=SC2016 # apt is to expand it
	apt-get indextargets --format '$(REPO_URI)' "Created-By: Packages" \
		"Origin: Debian" "Label: $1" | sed '/^cdrom:/d' | sort -u | sed -n 1p
}

main_mirror() {
	mirror Debian
}

security_mirror() {
	mirror Debian-Security
}

# A new machine has no lists, or only those of the archive that it was installed from.
learn_mirrors() {
	[[ -n $(main_mirror) && -n $(security_mirror) ]] || update_lists || true
	[[ -n $(main_mirror) ]] || die "apt on this machine has no archive of Debian among its sources"
}

# What this machine's apt has been told about the ways to get packages, for another system's.
apt_settings() {
	apt-config dump | sed -n '/^Acquire::IndexTargets/d; /^Acquire::.* "..*";$/p'
	[[ -z ${http_proxy-} ]] || echo "Acquire::http::Proxy \"$http_proxy\";"
}

# use_release RELEASE [ARCHITECTURE]: the next kernels are from this one. Of an ARCHITECTURE other
# than amd64, packages are named PACKAGE:ARCHITECTURE.
use_release() {
	[[ "$debian $architecture" != "$1 ${2:-amd64}" ]] || return 0
	debian=$1
	architecture=${2:-amd64}
	apt_dir=$cache/apt
	[[ $debian == bookworm ]] || apt_dir+=-$debian
	[[ $architecture == amd64 ]] || apt_dir+=-$architecture
	kernel_lists_updated=
}

# Without a security archive, kernels that are only there are not available.
write_sources() {
	local options="signed-by=$keyring" main security
	options+=" arch=amd64"
	[[ $architecture == amd64 ]] || options+=,$architecture
	learn_mirrors
	main=$(main_mirror)
	if [[ $debian == sid ]]; then
		echo "deb [$options] $main sid main" >"$1"
		return
	fi
	security=$(security_mirror)
	cat >"$1" <<-END
		deb [$options] $main $debian main
		deb [$options] $main $debian-updates main
	END
	[[ -z $security ]] || echo "deb [$options] $security $debian-security main" >>"$1"
}

write_apt_config() {
	local dir=$1
	mkdir -p "$dir"/{lists,archives}/partial
	: >"$dir/status"
	write_sources "$dir/sources.list"
	cat >"$dir/apt.conf" <<-END
		Dir::Etc::SourceList "$dir/sources.list";
		Dir::Etc::SourceParts "/dev/null";
		Dir::Etc::Preferences "/dev/null";
		Dir::Etc::PreferencesParts "/dev/null";
		Dir::State "$dir";
		Dir::State::Status "$dir/status";
		Dir::Cache "$dir";
		APT::Architecture "amd64";
		#clear APT::Architectures;
		APT::Architectures { "amd64"; "$architecture"; };
		APT::Default-Release "";
		APT::Sandbox::User "root";
		Acquire::Retries "1";
		#clear APT::Update;
	END
}

# kernel_apt COMMAND ARGUMENT...: apt-get or apt-cache with that configuration.
kernel_apt() {
	flock "$cache/.lock.debian" "$1" -q -c "$apt_dir/apt.conf" "${@:2}"
}

# At most once a run. A list that could not be fetched shows when a package is missing.
kernel_lists_updated=
update_kernel_lists() {
	[[ -z $kernel_lists_updated ]] || return 0
	kernel_lists_updated=yes
	write_apt_config "$apt_dir"
	say "fetching the package lists of Debian $debian"
	kernel_apt apt-get update >&2 || say "not all of the lists could be fetched"
}

# What the current version of a package of the kernels depends on.
kernel_depends() {
	kernel_apt apt-cache --no-all-versions show "$1" 2>/dev/null | depends
}

# Fetch packages of the kernels and unpack them, all into one directory.
unpack_packages() {
	local dir=$1 package
	shift
	say "fetching $*"
	(cd "$dir" && kernel_apt apt-get download "$@" >&2) || return
	for package in "$dir"/*.deb; do
		dpkg -x "$package" "$dir" || return
	done
}
