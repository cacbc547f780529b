// SPDX-License-Identifier: Apache-2.0
/// "1 broker", "2 brokers". For nouns with a plural in "s".
public func counted(_ count: some BinaryInteger, _ noun: String) -> String {
    "\(count) \(noun)\(count == 1 ? "" : "s")"
}
