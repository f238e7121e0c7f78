/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What gVisor's timerfd.cc takes from gVisor's own test/util, as far as it takes it: files that
 * are closed, values or an errno, and matchers for what a system call returns.
 */
#ifndef OTHERS_GVISOR_HPP
#define OTHERS_GVISOR_HPP

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <utility>

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gvisor {
namespace testing {

class PosixError {
public:
	PosixError(int error, const char *) : error_(error) {}
	int value() const { return error_; }

private:
	int error_;
};

/* A value, or the errno for which there is none. */
template <typename T> class PosixErrorOr {
public:
	PosixErrorOr(const PosixError &error) : error_(error.value()) {}
	PosixErrorOr(T &&value) : value_(std::move(value)) {}
	int error() const { return error_; }
	T &&take() { return std::move(value_); }

private:
	int error_ = 0;
	T value_;
};

class FileDescriptor {
public:
	FileDescriptor() {}
	explicit FileDescriptor(int fd) : fd_(fd) {}
	FileDescriptor(FileDescriptor &&other) : fd_(std::exchange(other.fd_, -1)) {}
	~FileDescriptor()
	{
		if (fd_ >= 0)
			close(fd_);
	}
	int get() const { return fd_; }

private:
	int fd_ = -1;
};

/* gVisor saves and restores its state in between.  A kernel does not. */
inline void MaybeSave() {}

class DisableSave {
public:
	void reset() {}
};

/*
 * Two cases are left out on other kernels: on some, one may seek in a timerfd, and somebody may
 * set the clock meanwhile.  Neither is so here.
 */
inline bool IsRunningOnGvisor()
{
	return true;
}

inline ssize_t ReadFd(int fd, void *buffer, size_t size)
{
	return read(fd, buffer, size);
}

MATCHER(SyscallSucceeds, "succeeds")
{
	if (arg >= 0)
		return true;
	*result_listener << "errno " << errno;
	return false;
}

MATCHER_P(SyscallSucceedsWithValue, value, "succeeds with that value")
{
	if (arg < 0)
		*result_listener << "errno " << errno;
	return arg >= 0 && static_cast<long>(arg) == static_cast<long>(value);
}

MATCHER_P(SyscallFailsWithErrno, error, "fails with that errno")
{
	if (arg < 0)
		*result_listener << "errno " << errno;
	return arg == -1 && errno == error;
}

template <typename T> T take_or_fail(PosixErrorOr<T> value)
{
	EXPECT_EQ(value.error(), 0);
	return std::move(value.take());
}

#define ASSERT_NO_ERRNO_AND_VALUE(expression) take_or_fail(expression)

#define SKIP_IF(condition)		\
	do {				\
		if (condition)		\
			GTEST_SKIP();	\
	} while (0)

} /* namespace testing */
} /* namespace gvisor */

#endif /* OTHERS_GVISOR_HPP */
