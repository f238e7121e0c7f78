/* SPDX-License-Identifier: GPL-2.0 */
/* Which twheelq this is. */
#ifndef TWHEELQ_VERSION_H
#define TWHEELQ_VERSION_H

#define TWHEELQ_VERSION	"0.1.0"

#endif /* TWHEELQ_VERSION_H */
