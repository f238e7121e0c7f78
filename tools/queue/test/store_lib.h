/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests of the store share: a directory of their own, and short ways to say things. */
#ifndef STORE_LIB_H
#define STORE_LIB_H

#include <dirent.h>

#include "harness.h"
#include "store.h"

/* The directory of this test, which is made new and empty; removed by the next test of it. */
const char *test_dir(void);
void remove_tree(const char *path);

/* RocksDB's files in it, and the path of one of them. */
DIR *list_files(void);
void path_of(char *path, size_t size, const struct dirent *entry);

/* A configuration for the store in @dir, whose lines go to log_text. */
struct store_config test_config(const char *dir);
extern char log_text[8192];

/* Open the test's store, made if there is none; what fails ends the test. */
struct store *open_store(void);

struct job_record make_job(uint64_t id, enum job_state state, uint32_t tube, uint32_t pri,
			   uint64_t order);
void put_tube(struct store *store, uint32_t tube, const char *name);
/* Put it with a body that its id tells, and see that this is the body. */
void put_job(struct store *store, struct job_record *job);
void see_body(struct store *store, const struct job_record *job);
/* The ids of an index from @from on, and how many they are. */
size_t walk_ids(struct store *store, struct job_place from, uint64_t *ids, size_t nr,
		bool back);

#endif /* STORE_LIB_H */
