// SPDX-License-Identifier: Apache-2.0
// Whoever runs a worker reads its configuration.
@_exported public import WorkerConfiguration
