// SPDX-License-Identifier: GPL-2.0
/*
 * A network load: sends small datagrams to itself for ever, as fast as it can, so that
 * the CPU is busy and spends most of its time in softirqs; for tools/bench/kernel.
 */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#define DATAGRAMS	64

static int open_socket(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	if (fd < 0)
		err(1, "socket");
	if (bind(fd, (struct sockaddr *)&address, size) ||
	    getsockname(fd, (struct sockaddr *)&address, &size) ||
	    connect(fd, (struct sockaddr *)&address, size))
		err(1, "a socket that is connected to itself");
	return fd;
}

int main(void)
{
	char data[64] = "";
	struct iovec part = { .iov_base = data, .iov_len = sizeof(data) };
	struct mmsghdr messages[DATAGRAMS] = {};
	int i, fd = open_socket();

	for (i = 0; i < DATAGRAMS; i++) {
		messages[i].msg_hdr.msg_iov = &part;
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	/* A packet that finds no room is lost, as on a network. */
	for (;;) {
		if (sendmmsg(fd, messages, DATAGRAMS, 0) < 0)
			err(1, "sendmmsg");
		recvmmsg(fd, messages, DATAGRAMS, 0, NULL);
	}
}
