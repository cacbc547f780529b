/// "1 broker", "2 brokers"; of a noun whose plural ends with an "s" alone.
public func counted(_ count: some BinaryInteger, _ noun: String) -> String {
    "\(count) \(noun)\(count == 1 ? "" : "s")"
}
