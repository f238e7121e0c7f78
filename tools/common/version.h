/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The version that --version prints, the same as that of the library and the module.
 * Packages of a commit are compiled with a longer one.
 */
#ifndef COMMON_VERSION_H
#define COMMON_VERSION_H

#ifndef TWHEEL_VERSION
#define TWHEEL_VERSION	"0.2.0"
#endif

#endif /* COMMON_VERSION_H */
