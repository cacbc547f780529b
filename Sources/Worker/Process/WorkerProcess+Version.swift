// SPDX-License-Identifier: Apache-2.0
extension WorkerProcess {
    /// This program's version: the topmost in CHANGELOG.md.
    public static let version = "1.0.0"
}
