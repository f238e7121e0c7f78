# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154 # common.sh says where the cache is
# Kafka's brokers for setup: their jars and those that they need, by Maven.
#
# kafka/VERSION.pom pins the versions. kafka/VERSION.sha256 has the checksum of each jar: a
# jar that differs, one too many or one too few is refused. kafka_sums makes it anew.

kafka_versions=(3.9 4)
kafka_jdk=17
kafka_plugin=org.apache.maven.plugins:maven-dependency-plugin:2.8

is_kafka() {
	[[ " ${kafka_versions[*]/#/kafka-} " == *" $1 "* ]]
}

have_kafka() {
	cmp -s "$vm/kafka/$1.sha256" "$cache/kafka-$1/sha256" && [[ -e $cache/kafka-$1/version ]]
}

# A JDK that is new enough, whoever it is from. A JRE cannot run the tests' sources.
have_jdk() {
	local version
	version=$(javac -version 2>&1) && [[ $version =~ ^javac\ ([0-9]+) ]] &&
		((BASH_REMATCH[1] >= kafka_jdk))
}

kafka_packages() {
	have_jdk || try_packages default-jdk-headless || return
	type -P mvn >/dev/null || try_packages maven || return
	have_jdk && type -P mvn >/dev/null
}

# fetch_jars VERSION DIR: the user's settings of Maven hold, such as a proxy. The files that
# it gathers besides, a repository, are not the user's.
fetch_jars() {
	mvn -q -B -f "$vm/kafka/$1.pom" "-Dmaven.repo.local=$2/repository" \
		"$kafka_plugin:copy-dependencies" -DincludeScope=runtime \
		"-DoutputDirectory=$2" >"$2/mvn.log" 2>&1
}

kafka_sums() {
	(cd "$1" && sha256sum -- *.jar)
}

check_jars() {
	local wanted=$vm/kafka/$1.sha256

	kafka_sums "$2" >"$2/sha256"
	cmp -s "$wanted" "$2/sha256" && return
	{ diff "$wanted" "$2/sha256" || true; } |
		sed -n 's/^</is wanted:/p; s/^>/has come: /p' >&2
	die "the jars of kafka $1 are not those of ${wanted#"$root"/}; see above"
}

setup_kafka() {
	local name=kafka-$1

	if is_left_out kafka || is_left_out "$name"; then
		cannot_have "kafka $1" "TWHEEL_WITHOUT leaves it out"
	fi
	lock "$name"
	! have_kafka "$1" || return 0
	kafka_packages || cannot_have "kafka $1" "a JDK $kafka_jdk and Maven cannot be installed"
	make_tmp "$name"
	say "fetching the jars of kafka $1"
	fetch_jars "$1" "$tmp" || {
		grep -m 3 '^\[ERROR\]' "$tmp/mvn.log" >&2 || tail -n 3 "$tmp/mvn.log" >&2
		cannot_have "kafka $1" "Maven could not fetch its jars"
	}
	check_jars "$1" "$tmp"
	rm -rf "$tmp"/{repository,mvn.log}
	basename "$tmp"/kafka_2.13-*.jar .jar | sed 's/.*-//' >"$tmp/version"
	finish "$name"
	say "kafka $1 is $(<"$cache/$name/version")"
}
