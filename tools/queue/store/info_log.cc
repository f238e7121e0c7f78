// SPDX-License-Identifier: GPL-2.0
/*
 * RocksDB's own log goes to ours. The header for C takes a logger but makes none: hence C++.
 *
 * Built without type information, as Debian's RocksDB is: there is none to derive from.
 */
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include <algorithm>
#include <memory>

#include <rocksdb/env.h>

#include "queue/store/info_log.h"

/* As in RocksDB's db/c.cc. */
struct rocksdb_logger_t {
	std::shared_ptr<rocksdb::Logger> rep;
};

namespace {

typedef void (*log_function)(int priority, const char *format, ...);

class Log : public rocksdb::Logger {
 public:
	explicit Log(log_function log)
		: Logger(rocksdb::InfoLogLevel::ERROR_LEVEL), log_(log)
	{
	}

	~Log() override
	{
	}

	void LogHeader(const char *, va_list) override
	{
	}

	void Logv(const char *format, va_list args) override
	{
		char line[512], *end;

		vsnprintf(line, sizeof(line), format, args);
		/* It may end with a newline, or have several lines. */
		for (end = line + strlen(line); end > line && end[-1] == '\n'; )
			*--end = '\0';
		std::replace(line, end, '\n', ' ');
		log_(LOG_WARNING, "RocksDB: %s", line);
	}

	void Logv(const rocksdb::InfoLogLevel level, const char *format, va_list args) override
	{
		if (level >= GetInfoLogLevel())
			Logv(format, args);
	}

 private:
	log_function log_;
};

} // namespace

void info_log_set(rocksdb_options_t *options, log_function log)
{
	rocksdb_logger_t logger = { std::make_shared<Log>(log) };

	rocksdb_options_set_info_log(options, &logger);
}
