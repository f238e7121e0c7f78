// SPDX-License-Identifier: GPL-2.0
/*
 * RocksDB's own log goes to ours. The header for C takes a logger but makes none: hence C++.
 *
 * Built without type information, as Debian's RocksDB is: there is none to derive from.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>

#include <rocksdb/env.h>

#include "queue/store/fault.h"
#include "queue/store/info_log.h"

/* As in RocksDB's db/c.cc. */
struct rocksdb_logger_t {
	std::shared_ptr<rocksdb::Logger> rep;
};

namespace {

typedef void (*log_function)(int priority, const char *format, ...);
typedef std::chrono::steady_clock steady;

/* When a disk is full, each try of RocksDB has an error: at most so many in a period. */
const unsigned int LINES_MOST = 10;
const std::chrono::seconds PERIOD(60);

class Limit {
 public:
	/* Returns whether a line may be logged; @left_out are those not logged before it. */
	bool Allows(unsigned int *left_out)
	{
		std::lock_guard<std::mutex> guard(lock_);

		if (!lines_ || steady::now() - begin_ >= PERIOD) {
			begin_ = steady::now();
			lines_ = 0;
		}
		if (lines_ == LINES_MOST) {
			left_out_++;
			return false;
		}
		lines_++;
		*left_out = left_out_;
		left_out_ = 0;
		return true;
	}

 private:
	std::mutex lock_;
	steady::time_point begin_;
	unsigned int lines_ = 0;
	unsigned int left_out_ = 0;
};

class Log : public rocksdb::Logger {
 public:
	Log(log_function log, int *ignored)
		: Logger(rocksdb::InfoLogLevel::WARN_LEVEL), log_(log), ignored_(ignored)
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
		Say("RocksDB", format, args);
	}

	/* Of the warnings only how many bytes of a log are not read, and those of a repair. */
	void Logv(const rocksdb::InfoLogLevel level, const char *format, va_list args) override
	{
		if (level > GetInfoLogLevel()) {
			Say("RocksDB", format, args);
		} else if (level == GetInfoLogLevel() && strstr(format, "dropping")) {
			Say("the end of a log is torn, or damaged: RocksDB", format, args);
		} else if (level == GetInfoLogLevel() && strstr(format, "ignoring")) {
			NoteIgnored(format, args);
			Say("RocksDB", format, args);
		}
	}

 private:
	/* A repair goes on without a file that it cannot read, or make a table of. */
	void NoteIgnored(const char *format, va_list args)
	{
		char line[2 * PATH_MAX];
		va_list copy;
		int error;

		va_copy(copy, args);
		vsnprintf(line, sizeof(line), format, copy);
		va_end(copy);
		error = store_errno(line);
		if (ignored_ && error != -EBADMSG && *ignored_ != -ENOSPC)
			*ignored_ = error;
	}

	void Say(const char *what, const char *format, va_list args)
	{
		char line[512], *end;
		unsigned int left_out;

		if (!limit_.Allows(&left_out))
			return;
		if (left_out)
			log_(LOG_WARNING, "RocksDB: %u lines were left out", left_out);
		vsnprintf(line, sizeof(line), format, args);
		/* It may end with a newline, or have several lines. */
		for (end = line + strlen(line); end > line && end[-1] == '\n'; )
			*--end = '\0';
		std::replace(line, end, '\n', ' ');
		store_shorten_paths(line);
		log_(LOG_WARNING, "%s: %s", what, line);
	}

	log_function log_;
	int *ignored_;
	Limit limit_;
};

} // namespace

void info_log_set(rocksdb_options_t *options, log_function log, int *ignored)
{
	rocksdb_logger_t logger = { std::make_shared<Log>(log, ignored) };

	rocksdb_options_set_info_log(options, &logger);
}
