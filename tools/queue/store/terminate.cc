// SPDX-License-Identifier: GPL-2.0
#include <syslog.h>
#include <unistd.h>

#include <exception>

#include "queue/store/terminate.h"

namespace {

void (*end_log)(int priority, const char *format, ...);
int end_status;

[[noreturn]] void End()
{
	const std::exception_ptr thrown = std::current_exception();

	try {
		if (thrown)
			std::rethrow_exception(thrown);
	} catch (const std::exception &error) {
		end_log(LOG_ERR, "RocksDB cannot go on: %s", error.what());
	} catch (...) {
		end_log(LOG_ERR, "RocksDB cannot go on");
	}
	_exit(end_status);
}

}  // namespace

void store_end_by_exceptions(void (*log)(int priority, const char *format, ...), int status)
{
	end_log = log;
	end_status = status;
	std::set_terminate(End);
}
