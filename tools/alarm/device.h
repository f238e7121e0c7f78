/* SPDX-License-Identifier: GPL-2.0 */
/* The backend on /dev/twheel. */
#ifndef ALARM_DEVICE_H
#define ALARM_DEVICE_H

#include "alarm/backend.h"

extern const struct alarm_ops alarm_device;

#endif /* ALARM_DEVICE_H */
