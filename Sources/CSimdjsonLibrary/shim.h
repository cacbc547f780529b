// SPDX-License-Identifier: Apache-2.0
// Only names the library; the C++ side of it is in CSimdjson.
