# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# A library for tests that are shell scripts. They print TAP. It works in bash, dash and
# busybox.
#
# Usage:
#
#	. tools/test/tap.sh
#	plan 2
#	check the_sum_is_right [ "$((1 + 1))" = 2 ]
#	check_silent nothing_is_left ls "$tmp"
#	tests_done
#
# $tmp			a directory for the script's files, below TMPDIR. It is removed when
#			the script ends, also by a signal. If the script has a function
#			clean_up, that is called before.
# $tap_also		names of files that are shown, too, when a test fails
#
# plan N		there will be N results. Without it, tests_done prints the plan.
# check NAME COMMAND...
#			COMMAND succeeds. Its output is shown only when it fails.
# check_silent NAME COMMAND...
#			COMMAND prints nothing. Its status does not matter.
# result NAME STATUS [FILE...]
#			STATUS is 0. Else the content of FILEs is shown.
# skip NAME REASON	this test was not done
# skip_all REASON	end the script: none of its tests can be done here
# check_functions	plan and check all functions between the lines "# --- tests" and
#			"# --- main" of the script. Their names are those of the tests.
# subtests COMMAND...	run a program that prints TAP with a plan of its own
# none_skipped		a filter of such a program's output: a test that it skipped has failed
# failed_before		succeeds if a test has failed so far
# tests_done		end the script. The status is 1 if a test failed, if there was none,
#			or if there were more or fewer than planned.
#
# COMMAND runs in the script's own shell: it may be a function and may set variables.
# A script that ends without tests_done or skip_all fails.

tap_number=0
tap_planned=
tap_failed=
tap_subtests=
tap_is_done=
tap_also=
tmp=$(mktemp -d "${TMPDIR:-/tmp}/twheel-test.XXXXXX") || exit

tap_exit() {
	tap_status=$?
	trap - EXIT
	trap '' INT TERM HUP
	! command -v clean_up >/dev/null || clean_up
	rm -rf "$tmp"
	if [ -z "$tap_is_done" ] && [ "$tap_status" -eq 0 ]; then
		echo "# the script ended before tests_done"
		tap_status=1
	fi
	exit "$tap_status"
}
trap tap_exit EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

plan() {
	tap_planned=$1
	echo "1..$1"
}

# The end of long output is shown: errors come last. awk ends the last line, also if nobody did.
tap_show() {
	tail -q -n 100 "$@" 2>/dev/null | awk '{ print "# " $0 }'
}

result() {
	local name="$1" status="$2"

	shift 2
	tap_number=$((tap_number + 1))
	if [ "$status" -eq 0 ]; then
		echo "ok $tap_number - $name"
	else
		# shellcheck disable=SC2086 # words
		[ -z "$*$tap_also" ] || tap_show "$@" $tap_also
		echo "not ok $tap_number - $name"
		tap_failed=yes
	fi
}

check() {
	local name="$1" status=0 start took

	shift
	start=$(date +%s)
	"$@" >"$tmp/tap_output" 2>&1 || status=$?
	took=$(($(date +%s) - start))
	[ "$took" -lt 10 ] || echo "# the next one took $took s"
	result "$name" "$status" "$tmp/tap_output"
}

tap_says_nothing() {
	"$@" >"$tmp/tap_said" 2>&1
	cat "$tmp/tap_said"
	[ ! -s "$tmp/tap_said" ]
}

check_silent() {
	local name="$1"

	shift
	check "$name" tap_says_nothing "$@"
}

skip() {
	tap_number=$((tap_number + 1))
	echo "ok $tap_number - $1 # SKIP $2"
}

skip_all() {
	echo "1..0 # SKIP $1"
	tap_is_done=yes
	exit 0
}

check_functions() {
	local test

	# shellcheck disable=SC2046 # one word a name
	set -- $(sed -n '/^# --- tests/,/^# --- main/ s/^\([a-z_0-9]*\)() {$/\1/p' "$0")
	plan $#
	for test; do
		check "$test" "$test"
	done
}

subtests() {
	tap_subtests=yes
	"$@" || tap_failed=yes
}

none_skipped() {
	awk '
		/^ok .* # SKIP/	{ sub(/^ok/, "not ok"); sub(/# SKIP/, "# not to be skipped here:"); failed = 1 }
				{ print; fflush() }
		END		{ exit failed }'
}

failed_before() {
	[ -n "$tap_failed" ]
}

tests_done() {
	tap_is_done=yes
	if [ "$tap_number" -gt 0 ] || [ -z "$tap_subtests" ]; then
		[ -n "$tap_planned" ] || plan "$tap_number"
	fi
	if [ "${tap_planned:-$tap_number}" -ne "$tap_number" ]; then
		echo "# there were $tap_number results, but $tap_planned were planned"
		tap_failed=yes
	fi
	[ "$tap_number" -gt 0 ] || [ -n "$tap_subtests" ] || tap_failed=yes
	[ -z "$tap_failed" ] || exit 1
	exit 0
}
