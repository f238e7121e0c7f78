// SPDX-License-Identifier: GPL-2.0
/* Addresses of sockets as text. No name is looked up but numbers. */
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "common/address.h"
#include "common/util.h"
#include "test/device/harness.h"

TEST(an_address_is_a_host_and_a_port_or_a_path)
{
	static const struct {
		const char *text, *formatted;
	} addresses[] = {
		{ "127.0.0.2:80", "127.0.0.2:80" }, { "127.0.0.2", "127.0.0.2:11300" },
		{ "80", "127.0.0.1:80" }, { ":80", "127.0.0.1:80" },
		{ "0", "127.0.0.1:0" }, { "65535", "127.0.0.1:65535" },
		{ "[::1]:80", "[::1]:80" }, { "[::1]", "[::1]:11300" }, { "::1", "[::1]:11300" },
		{ "unix:/tmp/x", "unix:/tmp/x" }, { "unix:x:1", "unix:x:1" },
	};
	char text[ADDRESS_TEXT];
	struct address address;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(addresses); i++) {
		test_about("\"%s\"", addresses[i].text);
		ASSERT(!address_check(addresses[i].text));
		ASSERT(!address_parse(&address, addresses[i].text, "11300"));
		ASSERT(!strcmp(address_format(text, &address), addresses[i].formatted));
	}
}

TEST(what_is_wrong_with_an_address_is_said)
{
	static const struct {
		const char *text, *wrong;
	} addresses[] = {
		{ "127.0.0.1:65536", "port" }, { "127.0.0.1:", "port" }, { "127.0.0.1:x", "port" },
		{ "127.0.0.1:-1", "port" }, { "127.0.0.1:080000", "port" }, { "unix:", "no path" },
		{ "/tmp/x", "unix:PATH" }, { "x:y:z", "unix:PATH" }, { "[x:y]:1", "unix:PATH" },
	};
	struct address address;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(addresses); i++) {
		const char *wrong = address_parse(&address, addresses[i].text, "11300");

		test_about("\"%s\"", addresses[i].text);
		ASSERT(wrong && strstr(wrong, addresses[i].wrong));
		ASSERT(!strcmp(address_check(addresses[i].text), wrong));
	}
}

TEST(a_path_and_a_host_have_their_limits)
{
	char text[400] = "unix:";
	struct address address;
	const char *wrong;

	memset(text + 5, 'x', sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1);
	ASSERT(!address_parse(&address, text, "1"));
	text[strlen(text)] = 'x';
	wrong = address_parse(&address, text, "1");
	ASSERT(wrong && strstr(wrong, "too long"));
	memset(text, 'x', 256);
	strcpy(text + 256, ":1");
	wrong = address_parse(&address, text, "1");
	ASSERT(wrong && strstr(wrong, "too long"));
}

TEST(an_address_is_local_or_not)
{
	static const struct {
		const char *text;
		bool local;
	} cases[] = {
		{ "unix:/tmp/socket", true }, { "127.0.0.1:1", true }, { "127.255.0.9:1", true },
		{ "[::1]:1", true }, { "[::ffff:127.0.0.1]:1", true }, { ":1", true },
		{ "0.0.0.0:1", false }, { "[::]:1", false }, { "128.0.0.1:1", false },
		{ "192.168.0.1:1", false }, { "[::ffff:10.0.0.1]:1", false },
		{ "[fe80::1]:1", false },
	};
	struct address address;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		test_about("%s", cases[i].text);
		ASSERT(!address_parse(&address, cases[i].text, "1"));
		ASSERT_EQ(address_is_local(&address), cases[i].local);
	}
}
