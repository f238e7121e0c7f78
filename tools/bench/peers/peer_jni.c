// SPDX-License-Identifier: GPL-2.0
/* The CPU time of the process for Java, whose own clock of it has steps of 10 ms. */
#include <jni.h>
#include <time.h>

JNIEXPORT jlong JNICALL Java_Peer_cpuNs(JNIEnv *env, jclass class);

JNIEXPORT jlong JNICALL Java_Peer_cpuNs(JNIEnv *env, jclass class)
{
	struct timespec time;

	(void)env;
	(void)class;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}
