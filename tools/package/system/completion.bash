# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2207 # words of --help have no spaces
# Completion for twheelctl.
#
# Commands, options and operands are those that --help tells, so that nothing here has
# to be kept in line with it. What a value is goes by its name there, see
# _twheelctl_value().

# "--name=VALUE" or "--name" of each option of a command, and the same of its short name.
_twheelctl_options() {
	"$@" --help 2>/dev/null | sed -nE '
		s/^ {2,6}(-(.), )?(--[a-z0-9-]+)(=[^ ]+)? .*/\3\4 -\2\4/; T
		s/ -(=.*)?$//; s/ /\n/; p'
}

_twheelctl_commands() {
	"$1" --help 2>/dev/null | sed -nE '/^Commands:/,/^[^C ]/ s/^  ([a-z]+) .*/\1/p'
}

# Does the command take this operand?
_twheelctl_takes() {
	"${@:2}" --help 2>/dev/null | sed -n '/^Usage:/p; /^  or:/p' | grep -q " $1\>"
}

# _twheelctl_value NAME: offer what a value of that name can be; fails for a name that is not
# known.
_twheelctl_value() {
	case $1 in
	PATH | FILE)	compopt -o default ;;
	CLOCK)		COMPREPLY=($(compgen -W "monotonic boottime realtime" -- "$cur")) ;;
	N | S | TIME)	;;
	*)		return 1 ;;
	esac
}

_twheelctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} program=("${COMP_WORDS[0]}") word value='' i
	local -A takes

	COMPREPLY=()
	_twheelctl_learn
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		=)	;;
		--)	[[ -z $value ]] || { value=''; continue; }
			_twheelctl_rest $((i + 1))
			return ;;
		-*)	value=${takes[$word]-} ;;
		*)	if [[ -z $value ]] && ((${#program[@]} == 1)); then
				program+=("$word")
				_twheelctl_learn
			fi
			value='' ;;
		esac
	done
	[[ $cur != = ]] || cur=''
	if [[ -n $value ]]; then
		_twheelctl_value "$value" || true
	elif [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "${!takes[*]}" -- "$cur"))
	elif ((${#program[@]} == 1)); then
		COMPREPLY=($(compgen -W "$(_twheelctl_commands "${program[@]}")" -- "$cur"))
	elif _twheelctl_takes FILE "${program[@]}"; then
		compopt -o default
	fi
}

# Which options the program, or its command, has now, and what values they take.
_twheelctl_learn() {
	takes=()
	while IFS='=' read -r word value; do
		takes[$word]=$value
	done < <(_twheelctl_options "${program[@]}")
	value=''
}

# What follows "--" is another command, with words of its own.
_twheelctl_rest() {
	_twheelctl_takes COMMAND "${program[@]}" || return 0
	if ((COMP_CWORD == $1)); then
		COMPREPLY=($(compgen -c -- "$cur"))
	elif declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	else
		compopt -o default
	fi
}

complete -F _twheelctl twheelctl
