/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keys, on which signals and watches meet: numbers of 64 bits, with names.
 *
 * A text of digits alone is that number.  Any other is a name, and stands for the
 * number that is its hash: 64-bit FNV-1a, so that other programs can work it out
 * too.
 */
#ifndef _TWHEELCTL_KEY_H
#define _TWHEELCTL_KEY_H

#include <linux/types.h>

/* What stands between a key and a need; so no name has it. */
#define KEY_SIGN	">="

/**
 * struct key_names - the names that were said, by key
 * @tree: of struct key_name.
 */
struct key_names {
	void *tree;
};

const char *key_parse(const char *text, __u64 *key);
const char *key_names_learn(struct key_names *names, __u64 key, const char *text);
const char *key_names_find(const struct key_names *names, __u64 key);

#endif /* _TWHEELCTL_KEY_H */
