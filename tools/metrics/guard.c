// SPDX-License-Identifier: GPL-2.0
/* Who may do what on a page: the token, and the headers Host and Origin. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "metrics/guard.h"

#define NAME_MAX_LEN	255

/* --- the token -------------------------------------------------------------------------- */

/* Returns the bytes read, or a negative errno. */
static ssize_t read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read(fd, text, size);
	if (len < 0)
		len = -errno;
	close(fd);
	return len;
}

const char *guard_read_token(const char *path, char token[GUARD_TOKEN_MAX + 1])
{
	char text[GUARD_TOKEN_MAX + 3];
	ssize_t len = read_file(path, text, sizeof(text));
	ssize_t i;

	if (len < 0)
		return strerror(-len);
	if (len && text[len - 1] == '\n')
		len--;
	if (len && text[len - 1] == '\r')
		len--;
	if (!len)
		return "it is empty";
	if (len < GUARD_TOKEN_MIN)
		return "it has less than 16 characters";
	if (len > GUARD_TOKEN_MAX)
		return "it has more than 256 characters";
	for (i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return "it has a character that a token cannot have, or a second line";
	memcpy(token, text, len);
	token[len] = '\0';
	return NULL;
}

bool guard_others_may_read(const char *path)
{
	struct stat status;

	return !stat(path, &status) && (status.st_mode & 0004);
}

bool guard_is_token(const char *token, const char *given)
{
	size_t len = strlen(token), given_len = strlen(given), i;
	unsigned char difference = len != given_len;

	/* All of @token is read, whatever is given: no comparison ends the loop. */
	for (i = 0; i < len; i++)
		difference |= token[i] ^ given[given_len ? i % given_len : 0];
	return !difference;
}

/* --- Host and Origin -------------------------------------------------------------------- */

bool guard_is_name(const char *name)
{
	size_t len = strlen(name), i;

	if (!len || len > NAME_MAX_LEN)
		return false;
	for (i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("-._", name[i]))
			return false;
	return true;
}

/* Split "HOST:PORT"; the host stays without its brackets. */
static bool split(const char *authority, char host[NAME_MAX_LEN + 1])
{
	const char *end;

	if (*authority == '[') {
		authority++;
		end = strchr(authority, ']');
		if (!end || (end[1] && end[1] != ':'))
			return false;
	} else {
		end = authority + strcspn(authority, ":");
	}
	if (end == authority || end - authority > NAME_MAX_LEN)
		return false;
	memcpy(host, authority, end - authority);
	host[end - authority] = '\0';
	return true;
}

static bool is_address(const char *host)
{
	unsigned char address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

static bool is_this_machine(const char *host)
{
	char name[NAME_MAX_LEN + 1];

	return !gethostname(name, sizeof(name)) && !strcasecmp(host, name);
}

bool guard_is_host(const char *authority, const char *name)
{
	char host[NAME_MAX_LEN + 1];

	if (!authority || !split(authority, host))
		return false;
	return is_address(host) || !strcasecmp(host, "localhost") || is_this_machine(host) ||
	       (name && !strcasecmp(host, name));
}

bool guard_is_origin(const char *origin, const char *authority, const char *name)
{
	char host[NAME_MAX_LEN + 1];
	const char *rest;

	if (!strncmp(origin, "http://", 7))
		rest = origin + 7;
	else if (!strncmp(origin, "https://", 8))
		rest = origin + 8;
	else
		return false;
	if (!strcasecmp(rest, authority))
		return true;
	return name && split(rest, host) && !strcasecmp(host, name);
}
