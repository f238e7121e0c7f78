/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keys, on which signals and watches meet: numbers of 64 bits, with names.
 *
 * A text of digits is that number.  Any other text is a name and stands for its hash,
 * which is the 64-bit FNV-1a, so that other programs can compute it too.
 */
#ifndef _TWHEELCTL_KEY_H
#define _TWHEELCTL_KEY_H

#include <linux/types.h>

/* Separates a key from a need. A name cannot contain it. */
#define KEY_SIGN	">="

/**
 * struct key_names - the names that were used, by key
 * @tree: of struct key_name.
 */
struct key_names {
	void *tree;
};

const char *key_parse(const char *text, __u64 *key);
const char *key_names_learn(struct key_names *names, __u64 key, const char *text);
const char *key_names_find(const struct key_names *names, __u64 key);

#endif /* _TWHEELCTL_KEY_H */
