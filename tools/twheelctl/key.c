// SPDX-License-Identifier: GPL-2.0
/*
 * Keys, on which signals and watches meet: numbers of 64 bits, with names.
 */
#include <err.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "twheelctl/key.h"
#include "common/number.h"

#define FNV_BASIS	0xcbf29ce484222325ULL
#define FNV_PRIME	0x100000001b3ULL

struct key_name {
	__u64 key;
	char name[];
};

/* The 64-bit FNV-1a hash. */
static __u64 hash(const char *name)
{
	__u64 value = FNV_BASIS;

	for (; *name; name++)
		value = (value ^ (unsigned char)*name) * FNV_PRIME;
	return value;
}

static bool is_number(const char *text)
{
	return !text[strspn(text, "0123456789")];
}

/*
 * Compute the key that a text stands for.
 *
 * Return: NULL, or what is wrong with the text, as in number.h.
 */
const char *key_parse(const char *text, __u64 *key)
{
	if (!*text)
		return "is empty";
	if (strstr(text, KEY_SIGN))
		return "has \"" KEY_SIGN "\" in it";
	if (is_number(text))
		return count_parse(text, key);
	*key = hash(text);
	return NULL;
}

static int compare_names(const void *a, const void *b)
{
	const struct key_name *left = a, *right = b;

	return left->key < right->key ? -1 : left->key > right->key;
}

static void insert_name(struct key_names *names, __u64 key, const char *text)
{
	struct key_name *name = malloc(sizeof(*name) + strlen(text) + 1);

	if (name) {
		name->key = key;
		strcpy(name->name, text);
	}
	if (!name || !tsearch(name, &names->tree, compare_names))
		errx(EXIT_FAILURE, "out of memory for one more key");
}

/*
 * Remember the name of a key, unless it is a number.
 *
 * Return: the name: @text, or an earlier name that has the same hash.
 */
const char *key_names_learn(struct key_names *names, __u64 key, const char *text)
{
	const char *known = key_names_find(names, key);

	if (is_number(text))
		return text;
	if (!known)
		insert_name(names, key, text);
	return known ? known : text;
}

/* The name of a key, or NULL. */
const char *key_names_find(const struct key_names *names, __u64 key)
{
	struct key_name wanted = { .key = key };
	struct key_name **found = tfind(&wanted, &names->tree, compare_names);

	return found ? (*found)->name : NULL;
}
