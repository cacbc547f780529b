// SPDX-License-Identifier: Apache-2.0
#include <spawn.h>

/* Swift's Glibc module does not show it (glibc 2.34). */
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);
