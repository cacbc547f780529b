// SPDX-License-Identifier: Apache-2.0
// The launchers of real servers are the product's own (`carillon demo` uses them); tests find them here as well.
@_exported public import LocalServers
@_exported public import Processes
