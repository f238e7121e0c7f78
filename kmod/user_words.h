/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Copying structures of 64 bytes from and to user memory that is accessible (between
 * user_access_begin() and user_access_end()).
 *
 * They are copied word by word, because unsafe_copy_to_user() is a loop that takes 40
 * instructions more.
 */
#ifndef TWHEEL_USER_WORDS_H
#define TWHEEL_USER_WORDS_H

#include <linux/compiler.h>
#include <linux/types.h>
#include <linux/uaccess.h>

/* The size of the structures. */
#define USER_WORDS_SIZE	64

/* @access is unsafe_get_user or unsafe_put_user; it goes to @fault if it cannot. */
#define access_user_words(access, words, user, fault)	\
do {							\
	static_assert(USER_WORDS_SIZE == 8 * sizeof(u64));\
	access((words)[0], (user) + 0, fault);		\
	access((words)[1], (user) + 1, fault);		\
	access((words)[2], (user) + 2, fault);		\
	access((words)[3], (user) + 3, fault);		\
	access((words)[4], (user) + 4, fault);		\
	access((words)[5], (user) + 5, fault);		\
	access((words)[6], (user) + 6, fault);		\
	access((words)[7], (user) + 7, fault);		\
} while (0)

/* Copy a structure to user memory; false: it cannot be written. */
static __always_inline bool put_user_words(const void *from, void __user *to)
{
	const u64 *words = from;
	u64 __user *user = to;

	access_user_words(unsafe_put_user, words, user, fault);
	return true;
fault:
	return false;
}

/* Copy a structure from user memory; false: it cannot be read. */
static __always_inline bool get_user_words(void *to, const void __user *from)
{
	const u64 __user *user = from;
	u64 *words = to;

	/*
	 * One pointer is enough, but the compiler would keep one for each word.  Without the
	 * OPTIMIZER_HIDE_VAR here and in event.h, commands take more instructions
	 * (tools/bench/timers): QUERY 196 -> 206, CANCEL 255 -> 266, MODIFY 449 -> 468, ADD
	 * 371 -> 376.
	 */
	OPTIMIZER_HIDE_VAR(user);
	access_user_words(unsafe_get_user, words, user, fault);
	return true;
fault:
	return false;
}

#endif /* TWHEEL_USER_WORDS_H */
