// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The commit that the binary is built from, as `make` names it; empty if nobody named it.
const char *cbuild_commit(void);

/// The date of that commit; empty if nobody named it.
const char *cbuild_date(void);

/// How the binary is built: debug, release or trained.
const char *cbuild_kind(void);
