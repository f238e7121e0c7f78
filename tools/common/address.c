// SPDX-License-Identifier: GPL-2.0
/* Addresses of sockets as text. */
#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "common/address.h"

#define LOOPBACK	"127.0.0.1"
#define FORMS		"is not HOST:PORT, [HOST]:PORT or unix:PATH"

/* The longest name in DNS, and the longest number of a port. */
#define HOST_MAX	255
#define PORT_MAX	5

static const char *parse_path(struct address *address, const char *path)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&address->socket;
	size_t len = strlen(path);

	if (!len)
		return "has no path behind \"unix:\"";
	if (len >= sizeof(un->sun_path))
		return "has a path that is too long: 107 bytes at most";
	*un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(un->sun_path, path, len);
	address->len = offsetof(struct sockaddr_un, sun_path) + len + 1;
	return NULL;
}

/* The port in the text, behind its colon; NULL if there is none. */
static const char *find_port(const char *text)
{
	const char *colon = strrchr(text, ':');
	const char *bracket = strrchr(text, ']');

	if (bracket)
		return bracket[1] == ':' ? bracket + 2 : NULL;
	if (!colon)
		return text[strspn(text, "0123456789")] ? NULL : text;
	/* More than one colon and no bracket: an IPv6 host without a port. */
	return strchr(text, ':') == colon ? colon + 1 : NULL;
}

static bool is_port(const char *text)
{
	unsigned int port;
	int len = 0;

	return isdigit((unsigned char)*text) && strlen(text) <= PORT_MAX &&
	       sscanf(text, "%u%n", &port, &len) == 1 && !text[len] && port <= 65535;
}

static const char *look_up(struct address *address, const char *host, const char *port)
{
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV,
	};
	struct addrinfo *found;

	if (getaddrinfo(host, port, &hints, &found))
		return "has an unknown host";
	memcpy(&address->socket, found->ai_addr, found->ai_addrlen);
	address->len = found->ai_addrlen;
	freeaddrinfo(found);
	return NULL;
}

/* Only an address of IPv6 has colons; behind a % it names an interface. */
static bool is_host(const char *host)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr address;

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(host, "%"), host);
	return !strchr(host, ':') || inet_pton(AF_INET6, text, &address) == 1;
}

static bool is_unix(const char *text)
{
	return !strncmp(text, "unix:", 5);
}

/* Split the text; without a port in it, *@port stays as it is. Returns what is wrong, or NULL. */
static const char *split(const char *text, char host[HOST_MAX + 1], const char **port)
{
	const char *end = text + strlen(text);
	const char *given = find_port(text);

	if (strchr(text, '/'))
		return FORMS;
	if (given) {
		*port = given;
		end = given > text ? given - 1 : text;
	}
	if (!is_port(*port))
		return "has no port from 0 to 65535";
	if (*text == '[' && end > text && end[-1] == ']') {
		text++;
		end--;
	}
	if (end - text > HOST_MAX)
		return "has a host that is too long: 255 bytes at most";
	if (end > text)
		snprintf(host, HOST_MAX + 1, "%.*s", (int)(end - text), text);
	else
		strcpy(host, LOOPBACK);
	return is_host(host) ? NULL : FORMS;
}

const char *address_check(const char *text)
{
	char host[HOST_MAX + 1];
	const char *port = "0";
	struct address address;

	return is_unix(text) ? parse_path(&address, text + 5) : split(text, host, &port);
}

const char *address_parse(struct address *address, const char *text, const char *port)
{
	char host[HOST_MAX + 1];

	if (is_unix(text))
		return parse_path(address, text + 5);
	return split(text, host, &port) ?: look_up(address, host, port);
}

/* An IPv4 address within IPv6, ::ffff:127.0.0.1, is one of the loopback interface, too. */
static bool is_loopback6(const struct in6_addr *host)
{
	return IN6_IS_ADDR_LOOPBACK(host) ||
	       (IN6_IS_ADDR_V4MAPPED(host) && host->s6_addr[12] == IN_LOOPBACKNET);
}

bool address_is_local(const struct address *address)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&address->socket;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->socket;

	switch (address->socket.ss_family) {
	case AF_UNIX:
		return true;
	case AF_INET:
		return ntohl(in->sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
	case AF_INET6:
		return is_loopback6(&in6->sin6_addr);
	default:
		return false;
	}
}

const char *address_format(char text[ADDRESS_TEXT], const struct address *address)
{
	const struct sockaddr *socket = (const struct sockaddr *)&address->socket;
	const struct sockaddr_un *un = (const struct sockaddr_un *)&address->socket;
	char host[64], port[PORT_MAX + 1];

	if (socket->sa_family == AF_UNIX)
		snprintf(text, ADDRESS_TEXT, "unix:%s", un->sun_path);
	else if (getnameinfo(socket, address->len, host, sizeof(host), port, sizeof(port),
			     NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(text, ADDRESS_TEXT, "?");
	else
		snprintf(text, ADDRESS_TEXT, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
	return text;
}
