/* SPDX-License-Identifier: GPL-2.0 */
/* Notify systemd of the state of the daemon. */
#ifndef COMMON_NOTIFY_H
#define COMMON_NOTIFY_H

/* @state is "READY=1" or "STOPPING=1". Does nothing if systemd did not start the daemon. */
void notify(const char *state);

#endif /* COMMON_NOTIFY_H */
