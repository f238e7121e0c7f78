# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2207 # words of --help have no spaces
# Completion for twheelctl, twheelq and twheel-relay.
#
# Commands, options and operands are read from --help, so that this file need not change
# with them. Which values an option takes is told by the name of its value there, see
# _twheel_value().

# "--name=VALUE" or "--name" of each option of a command, and the same of its short name.
_twheel_options() {
	"$@" --help 2>/dev/null | sed -nE '
		s/^ {2,6}(-(.), )?(--[a-z0-9-]+)(=[^ ]+)?( .*)?$/\3\4 -\2\4/; t found
		s/^ {2,6}-(.) ([A-Z][^ ]*)( .*)?$/-\1=\2/p
		d
		: found
		s/ -(=.*)?$//; s/ /\n/; p'
}

_twheel_commands() {
	"$1" --help 2>/dev/null | sed -nE 's/^  ([a-z]+)  +[a-z].*/\1/p'
}

# Does the command take this operand?
_twheel_takes() {
	"${@:2}" --help 2>/dev/null | sed -n '/^Usage:/p; /^  or:/p' | grep -q "[[ ]$1\>"
}

# _twheel_value NAME: offer what a value of that name can be; fails for a name that is not
# known. In "auto|DURATION" the word in lower case is offered.
_twheel_value() {
	local words=

	case $1 in
	PATH | FILE)	compopt -o default ;;
	DIR)		compopt -o dirnames ;;
	CLOCK)		words="monotonic boottime realtime" ;;
	LEVEL)		words="error warning notice info debug" ;;
	*[a-z]*\|*)	words=$(tr '|' '\n' <<<"$1" | grep -x '[a-z]*') ;;
	ADDRESS | DURATION | KEY | MODE | N | NAME | REGEX | S | SIZE | TIME) ;;
	*=* | *,*)	;;
	*)		return 1 ;;
	esac
	[[ -z $words ]] || COMPREPLY=($(compgen -W "$words" -- "$cur"))
}

# Offer files where a command takes these, directories where it takes only these.
_twheel_operand() {
	if _twheel_takes FILE "$@"; then
		compopt -o default
	elif _twheel_takes DIR "$@"; then
		compopt -o dirnames
	fi
}

_twheel() {
	local cur=${COMP_WORDS[COMP_CWORD]} program=("${COMP_WORDS[0]}") word value='' i commands
	local -A takes

	COMPREPLY=()
	commands=$(_twheel_commands "${program[@]}")
	_twheel_learn
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		=)	;;
		--)	[[ -z $value ]] || { value=''; continue; }
			_twheel_rest $((i + 1))
			return ;;
		-*)	value=${takes[$word]-} ;;
		*)	if [[ -z $value && -n $commands ]]; then
				program+=("$word")
				commands=
				_twheel_learn
			fi
			value='' ;;
		esac
	done
	[[ $cur != = ]] || cur=''
	if [[ -n $value ]]; then
		_twheel_value "$value" || true
	elif [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "${!takes[*]}" -- "$cur"))
	elif [[ -n $commands ]]; then
		COMPREPLY=($(compgen -W "$commands" -- "$cur"))
	else
		_twheel_operand "${program[@]}"
	fi
}

# Which options the program, or its command, has now, and what values they take. twheelq
# alone has two that it does not list.
_twheel_learn() {
	takes=()
	while IFS='=' read -r word value; do
		takes[$word]=$value
	done < <(_twheel_options "${program[@]}")
	((${#takes[@]})) || takes=([--help]='' [--version]='')
	value=''
}

# What follows "--" is another command, with words of its own.
_twheel_rest() {
	_twheel_takes COMMAND "${program[@]}" || return 0
	if ((COMP_CWORD == $1)); then
		COMPREPLY=($(compgen -c -- "$cur"))
	elif declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	else
		compopt -o default
	fi
}

complete -F _twheel twheelctl twheelq twheel-relay
