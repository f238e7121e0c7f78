// SPDX-License-Identifier: GPL-2.0
/* A file of settings: lines that are settings, lines that are ignored, and errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/util.h"
#include "relay/client/config.h"
#include "test/device/harness.h"

static struct relay_settings settings = STAILQ_HEAD_INITIALIZER(settings);
static char path[64];
static char why[RELAY_CONFIG_WHY];

/* Create an empty file, and open it. */
static int make_file(void)
{
	int fd;

	strcpy(path, "/tmp/relay_config_test.XXXXXX");
	fd = mkstemp(path);
	ASSERT(fd >= 0);
	return fd;
}

/* Read a file of these bytes, and delete it. */
static bool read_bytes(const char *bytes, size_t len)
{
	int fd = make_file(), status;

	ASSERT_EQ(write(fd, bytes, len), (ssize_t)len);
	close(fd);
	status = relay_config_read(path, &settings, why);
	unlink(path);
	ASSERT(!status || status == EXIT_USAGE);
	return !status;
}

static bool read_text(const char *text)
{
	return read_bytes(text, strlen(text));
}

/* Remove the first setting that was read, and compare it. */
static void assert_next(const char *name, const char *value, unsigned int line)
{
	struct relay_setting *setting = STAILQ_FIRST(&settings);

	test_about("%s=%s", name, value);
	ASSERT(setting);
	ASSERT(!strcmp(setting->name, name));
	ASSERT(!strcmp(setting->value, value));
	ASSERT_EQ(setting->line, line);
	ASSERT(!strcmp(setting->path, path));
	STAILQ_REMOVE_HEAD(&settings, entry);
	free(setting);
}

TEST(lines_are_settings_in_their_order)
{
	ASSERT(read_text("security.protocol=sasl_ssl\nsasl.username=relay\nclient.id=x"));
	assert_next("security.protocol", "sasl_ssl", 1);
	assert_next("sasl.username", "relay", 2);
	assert_next("client.id", "x", 3);
	ASSERT(STAILQ_EMPTY(&settings));
}

TEST(comments_and_empty_lines_are_not_settings)
{
	ASSERT(read_text("# a=b\n\n  \t\n  # c=d\na=b\n#\n"));
	assert_next("a", "b", 5);
	ASSERT(STAILQ_EMPTY(&settings));
	ASSERT(read_text(""));
	ASSERT(STAILQ_EMPTY(&settings));
}

TEST(white_space_around_name_and_value_is_ignored)
{
	ASSERT(read_text("  a =  b c \t\r\nd=\r\n"));
	assert_next("a", "b c", 1);
	assert_next("d", "", 2);
}

TEST(a_value_may_have_characters_with_a_meaning)
{
	ASSERT(read_text("sasl.password=p=a#ss \"word\" \\n\n"));
	assert_next("sasl.password", "p=a#ss \"word\" \\n", 1);
}

TEST(a_line_may_be_long)
{
	static char value[100000];
	char *text;

	memset(value, 'v', sizeof(value) - 1);
	ASSERT(asprintf(&text, "a=%s\nb=c\n", value) > 0);
	ASSERT(read_text(text));
	assert_next("a", value, 1);
	assert_next("b", "c", 2);
	free(text);
}

TEST(a_line_that_is_not_a_setting_is_reported_by_its_number_without_its_text)
{
	static const char * const texts[] = {
		"a=b\nsecret\n", "a=b\n=secret\n", "a=b\nsecret secret=c\n", "a=b\n =secret",
		"a=b\nsecret\nc\n",
	};
	char wanted[128];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		test_about("\"%s\"", texts[i]);
		ASSERT(!read_text(texts[i]));
		snprintf(wanted, sizeof(wanted), "%s:2: this is not NAME=VALUE", path);
		ASSERT(!strcmp(why, wanted));
		assert_next("a", "b", 1);
	}
}

TEST(a_file_that_is_not_text_is_refused)
{
	ASSERT(!read_bytes("a=b\0c\n", 6));
	ASSERT(strstr(why, ":1: this is not text"));
}

TEST(a_file_that_cannot_be_read_is_reported)
{
	ASSERT_EQ(relay_config_read("/nonexistent/file", &settings, why), EXIT_CANNOT);
	ASSERT(!strcmp(why, "cannot open /nonexistent/file: No such file or directory"));
	ASSERT_EQ(relay_config_read("/", &settings, why), EXIT_CANNOT);
	ASSERT(!strcmp(why, "cannot read /: Is a directory"));
}

TEST(a_file_is_open_if_everybody_can_read_it)
{
	int fd = make_file();

	ASSERT(!relay_config_is_open(path));
	fchmod(fd, 0640);
	ASSERT(!relay_config_is_open(path));
	fchmod(fd, 0604);
	ASSERT(relay_config_is_open(path));
	close(fd);
	unlink(path);
	ASSERT(!relay_config_is_open(path));
	ASSERT(!relay_config_is_open("/dev/null"));
	ASSERT(!relay_config_is_open("/tmp"));
}
