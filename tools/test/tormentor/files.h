/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Files of the device: those that main opens for all, those that a worker opens for itself, and how
 * they go from one process to another.
 *
 * Two sockets of datagrams do the latter. A worker may send any of its files to the market, from
 * which any other one takes it. At the end of the round each sends its files to main.
 */
#ifndef TORMENTOR_FILES_H
#define TORMENTOR_FILES_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct held - a file that a thread can use
 * @fd: its descriptor.
 * @number: which one of the ledger's files it is.
 * @words: its words, mapped, or NULL.
 */
struct held {
	int fd;
	unsigned int number;
	uint64_t *words;
};

/* The two sockets: both ends of each are open in all processes. */
extern int market[2], hand_in[2];

/* Make both. Returns 0 or a negative errno. */
int make_sockets(void);
void close_sockets(void);

/* Open the files that all processes have, before these are forked. Returns how many. */
unsigned int open_common_files(uint64_t *chance);

/* Open a file of any kind. Returns 0 or a negative errno; the fd is in *@held. */
int open_file(struct held *held, uint64_t *chance);

/* Map the words of a file, if it has any. */
void map_words(struct held *held);

/* Unmap the words, and close the descriptor. */
void drop_file(struct held *held);

/* Send a file to @socket, or take one from it, without waiting. Returns whether that was done. */
bool send_file(int socket, const struct held *held);
bool take_file(int socket, struct held *held);

#endif /* TORMENTOR_FILES_H */
