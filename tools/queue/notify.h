/* SPDX-License-Identifier: GPL-2.0 */
/* Tell systemd what the daemon does. */
#ifndef TWHEELQ_NOTIFY_H
#define TWHEELQ_NOTIFY_H

/* "READY=1", "STOPPING=1"; nothing happens where there is no systemd. */
void notify(const char *state);

#endif /* TWHEELQ_NOTIFY_H */
