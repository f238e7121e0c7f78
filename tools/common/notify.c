// SPDX-License-Identifier: GPL-2.0
/* Notify systemd: a datagram to the socket that NOTIFY_SOCKET names. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/log.h"
#include "common/notify.h"

void notify(const char *state)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t len = name ? strlen(name) : 0;
	int fd;

	if (!len || len >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, name, len);
	/* The name of an abstract socket begins with a NUL, written as '@'. */
	if (*name == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL,
			     (const struct sockaddr *)&address,
			     offsetof(struct sockaddr_un, sun_path) + len) < 0)
		log_say(LOG_WARNING, "cannot send %s to systemd: %m", state);
	if (fd >= 0)
		close(fd);
}
